/** Formulas in Markdown, as people and models write them: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`. Pure. */
import type { MarkedExtension, Tokens } from "marked";

export const INLINE = "formula";
export const DISPLAY = "formula-display";

/** A dollar sign before or after a digit is mostly money: it begins no formula before a space, and ends none before a digit. */
const DOLLARS = /^\$(?!\s|\$)((?:\\[^\n]|[^\\$\n])+?)(?<!\s)\$(?!\d)/;
const PARENTHESES = /^\\\(([^\n]+?)\\\)/;
const BLOCK = /^(?: {0,3})(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n|$)/;
const BLOCK_INSIDE = /^(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\])/;

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

function rendered(token: Tokens.Generic): string {
  return `<code class="${token.display ? DISPLAY : INLINE}">${escaped(token.text as string)}</code>`;
}

export const formulas: MarkedExtension = {
  extensions: [
    {
      name: "formulaBlock",
      level: "block",
      start: (text) => /(?:^|\n) {0,3}(?:\$\$|\\\[)/.exec(text)?.index,
      tokenizer(text) {
        const found = BLOCK.exec(text);
        const inside = found && (found[1] ?? found[2]);
        if (!inside?.trim()) return undefined;
        return { type: "formulaBlock", raw: found![0], text: inside.trim(), display: true };
      },
      renderer: (token) => `<p>${rendered(token)}</p>`,
    },
    {
      name: "formulaInline",
      level: "inline",
      start: (text) => /\$|\\[([]/.exec(text)?.index,
      tokenizer(text) {
        const display = BLOCK_INSIDE.exec(text);
        const found = display ?? PARENTHESES.exec(text) ?? DOLLARS.exec(text);
        const inside = found && (found[1] ?? found[2]);
        if (!inside?.trim()) return undefined;
        return { type: "formulaInline", raw: found![0], text: inside.trim(), display: display !== null };
      },
      renderer: rendered,
    },
  ],
};
