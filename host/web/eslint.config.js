import js from "@eslint/js";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig({ ignores: ["node_modules"] }, js.configs.recommended, ...tseslint.configs.recommended, {
    rules: {
        eqeqeq: "error",
        "no-console": "error",
        "prefer-const": "error",
        "@typescript-eslint/no-explicit-any": "error",
        "@typescript-eslint/no-non-null-assertion": "error",
        // The types would be lost silently.
        "@typescript-eslint/consistent-type-imports": "error",
    },
});
