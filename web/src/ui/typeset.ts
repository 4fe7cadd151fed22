/** Formulas, drawn. Loaded when the first one is shown. */
import katex from "katex";
import "katex/dist/katex.min.css";
import { DISPLAY } from "./formulas";

const LONGEST = 4_000;

/** Puts the formula in place of its source; one that cannot be read stays as it was written. */
export function typeset(source: HTMLElement): void {
  const text = source.textContent ?? "";
  if (text.length > LONGEST) return;
  const drawn = document.createElement("span");
  const displayMode = source.classList.contains(DISPLAY);
  try {
    // Into an element and not as HTML: the page's policy refuses styles in HTML.
    katex.render(text, drawn, { displayMode, throwOnError: true, trust: false, strict: "ignore", errorColor: "currentcolor", maxSize: 40, maxExpand: 500 });
  } catch {
    return;
  }
  // A formula wider than its box is scrolled, with the keyboard as well.
  drawn.className = displayMode ? "formula-box" : "formula-inline";
  if (displayMode) {
    drawn.tabIndex = 0;
    drawn.setAttribute("role", "region");
    drawn.setAttribute("aria-label", "Formula");
  }
  source.replaceWith(drawn);
}
