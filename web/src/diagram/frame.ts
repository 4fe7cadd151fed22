/**
 * Draws diagrams for the page that this frame is in. The frame has no origin: it can read nothing of the page, of the
 * session or of any server. It gets the text of a diagram and gives back a picture.
 */
import mermaid from "mermaid";

let number = 0;

/**
 * Shows HTML with attributes as text: labels are not HTML here. The library would parse it, and the browser would report
 * each event handler that the policy of this frame blocks.
 */
function withoutHtml(text: string): string {
  return text.replace(/<(?!br[\s/]*>)(\/?[a-z][^<>]*[\s/][^<>]*)>/gi, "‹$1›");
}

async function draw(text: string, dark: boolean): Promise<string> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    // What the text of a diagram may not set itself.
    secure: ["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "suppressErrorRendering", "themeCSS", "themeVariables", "fontFamily", "layout", "htmlLabels"],
    theme: dark ? "dark" : "default",
    layout: "dagre",
    htmlLabels: false,
    flowchart: { htmlLabels: false, useMaxWidth: false },
    maxTextSize: 20_000,
    fontFamily: "system-ui, sans-serif",
  });
  return (await mermaid.render(`diagram-${(number += 1)}`, withoutHtml(text))).svg;
}

// One after the other: the library has one configuration, and one place to measure texts in.
let last: Promise<unknown> = Promise.resolve();

window.addEventListener("message", ({ data, source }: MessageEvent<{ id: number; text: string; dark: boolean }>) => {
  if (source !== window.parent) return;
  last = last
    .then(() => draw(data.text, data.dark))
    .then(
      (svg) => window.parent.postMessage({ id: data.id, svg }, "*"),
      () => window.parent.postMessage({ id: data.id, svg: null }, "*"),
    );
});
window.parent.postMessage({ ready: true }, "*");
