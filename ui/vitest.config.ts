import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "client", root: "client", include: ["test/**/*.test.ts"] } },
      { test: { name: "app", root: "app", include: ["test/**/*.test.{ts,tsx}"], environment: "jsdom" } },
    ],
  },
});
