/** Has diagrams drawn in a frame of their own, which can do nothing else. Loaded when the first one is shown. */
import { base } from "../denizen/base";

const LONGEST_MILLISECONDS = 15_000;

type FromFrame = { ready: true } | { id: number; svg: string | null };

let frame: Promise<Window> | null = null;
let number = 0;
const waiting = new Map<number, (svg: string | null) => void>();

/** The diagram as the address of a picture, which runs no script and loads nothing; null if the text is not a diagram. */
export async function draw(text: string, dark: boolean): Promise<string | null> {
  frame ??= open();
  const there = await frame;
  const id = (number += 1);
  const svg = await new Promise<string | null>((resolve) => {
    waiting.set(id, resolve);
    setTimeout(() => answer(id, null), LONGEST_MILLISECONDS);
    there.postMessage({ id, text, dark }, "*");
  });
  return svg === null ? null : `data:image/svg+xml;charset=utf-8,${encodeURIComponent(sized(svg))}`;
}

function answer(id: number, svg: string | null): void {
  waiting.get(id)?.(svg);
  waiting.delete(id);
}

function open(): Promise<Window> {
  return new Promise((resolve) => {
    const element = document.createElement("iframe");
    // Without allow-same-origin: it has no origin, no cookies and no storage. The server says the same.
    element.setAttribute("sandbox", "allow-scripts");
    element.setAttribute("aria-hidden", "true");
    element.tabIndex = -1;
    element.className = "drawing-frame";
    window.addEventListener("message", ({ data, source }: MessageEvent<FromFrame>) => {
      if (source === null || source !== element.contentWindow) return;
      if ("ready" in data) resolve(element.contentWindow!);
      else answer(data.id, data.svg);
    });
    element.src = `${base}/diagram.html`;
    document.body.append(element);
  });
}

/** As large as it wants to be: a picture without a size would be as wide as its place. */
function sized(svg: string): string {
  const [width, height] = /viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"/.exec(svg)?.slice(1) ?? [];
  if (width === undefined || height === undefined) return svg;
  return svg.replace(/<svg\b[^>]*>/, (tag) => tag.replace(/ (?:width|height|style)="[^"]*"/g, "").replace("<svg", `<svg width="${width}" height="${height}"`));
}
