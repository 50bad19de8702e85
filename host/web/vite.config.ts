import { defineConfig } from "vitest/config";

// `weir view FILE` serves the page and its interface on one port; `npm run dev` borrows the interface from there.
const server = process.env.WEIR_PAGE_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
    base: "./",
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
        outDir: "../../bin/page",
        emptyOutDir: true,
        target: "es2022",
        // Texts of the licences of what is in the bundle, beside it.
        license: { fileName: "licenses.md" },
        chunkSizeWarningLimit: 400,
    },
    server: { proxy: { "/api": { target: server, changeOrigin: true } } },
    test: {
        environment: "node",
        // For what hangs: a test takes seconds, but on a machine that is busy with others many times as long.
        testTimeout: 120_000,
        hookTimeout: 120_000,
        fileParallelism: false,
    },
});
