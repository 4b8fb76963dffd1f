import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  build: {
    target: "es2022",
    // The policy of the server permits no inline script, and no `data:` script.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: true,
  },
});
