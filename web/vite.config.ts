import { gzipSync } from "node:zlib";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const out = "../src/denizen/server/web";

/** Beside each text of the build stands the same, gzipped: the server sends it to whoever takes it. */
function gzipped(): Plugin {
  const squeeze = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) squeeze(path);
      else if (/\.(js|css|html|svg|json|webmanifest)$/.test(entry.name)) {
        writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
      }
    }
  };
  return { name: "gzipped", apply: "build", closeBundle: () => squeeze(out) };
}

/** KaTeX names each of its fonts in three formats: every browser that can run this client reads the first. */
function onlyWoff2(): Plugin {
  return {
    name: "only-woff2",
    enforce: "pre",
    transform: (code, id) => (/katex[^?]*\.css/.test(id) ? code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)/g, "") : null),
  };
}

export default defineConfig({
  // Relative: the server puts the path before it, by which it is served, into the page.
  base: "./",
  plugins: [react(), onlyWoff2(), gzipped()],
  build: {
    outDir: out,
    emptyOutDir: true,
    target: "es2022",
    // Inlined files would be data: addresses, which the Content-Security-Policy refuses for fonts and scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2_000,
    rollupOptions: { input: ["index.html", "diagram.html"] },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8420" } },
});
