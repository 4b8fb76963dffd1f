import { defineConfig } from "vitest/config";

/** Ends a test that hangs. Long, because other programs may keep the machine busy. */
const testTimeout = 60_000;

export default defineConfig({
  test: {
    projects: [
      { test: { name: "client", testTimeout, root: "client", include: ["test/**/*.test.ts"] } },
      { test: { name: "app", testTimeout, root: "app", include: ["test/**/*.test.{ts,tsx}"], environment: "jsdom" } },
    ],
  },
});
