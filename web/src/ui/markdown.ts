/** Markdown as HTML that can do no harm: no scripts, no styles, no forms, nothing loaded from elsewhere. */
import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";
import { isOdd } from "./odd";

/** Beyond it a text is shown as it is: parsing could take seconds. */
const LONGEST = 60_000;

const TAGS = [
  "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span",
  "strong", "table", "tbody", "td", "th", "thead", "tr", "ul", "input",
];

const HANDLE = /(^|[^\p{L}\p{N}_@/.-])@([\p{L}\p{N}][\p{L}\p{N}_-]*)/gu;

export interface Mentions {
  /** Whom `@handle` means; those that it means nobody stay as they are. */
  known: ReadonlyMap<string, string>;
  /** The reader's own handle. */
  me?: string;
  classOf: (mine: boolean) => string;
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // A picture would be loaded from elsewhere, and tell that it was read: it is shown as a link.
    image({ href, text }: Tokens.Image): string {
      return `<a href="${escaped(href)}">${escaped(text || href)}</a>`;
    },
    html({ text }: Tokens.HTML | Tokens.Tag): string {
      return escaped(text);
    },
  },
});

/** The HTML of a text; null where it is too long or too odd to be read as Markdown. */
export function toHtml(text: string, mentions?: Mentions): string | null {
  if (text.length > LONGEST || isOdd(text)) return null;
  let html: string;
  try {
    html = marked.parse(text, { async: false });
  } catch {
    return null;
  }
  const safe = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "class", "type", "checked", "disabled", "start", "align"],
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of safe.querySelectorAll("a")) {
    link.setAttribute("rel", "noopener noreferrer nofollow");
    link.setAttribute("target", "_blank");
  }
  for (const box of safe.querySelectorAll("input")) {
    if (box.type !== "checkbox") box.remove();
    else box.setAttribute("disabled", "");
  }
  if (mentions) markMentions(safe, mentions);
  const holder = document.createElement("div");
  holder.append(safe);
  return holder.innerHTML;
}

function markMentions(root: DocumentFragment, { known, me, classOf }: Mentions): void {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.textContent?.includes("@") && !node.parentElement?.closest("code, a")) texts.push(node as Text);
  }
  for (const node of texts) {
    const text = node.data;
    const parts: (string | HTMLElement)[] = [];
    let end = 0;
    for (const found of text.matchAll(HANDLE)) {
      const handle = found[2]!.toLowerCase();
      const name = known.get(handle);
      if (name === undefined) continue;
      const start = found.index + found[1]!.length;
      const mark = document.createElement("span");
      mark.className = classOf(handle === me);
      mark.title = name;
      mark.textContent = text.slice(start, start + 1 + found[2]!.length);
      parts.push(text.slice(end, start), mark);
      end = start + 1 + found[2]!.length;
    }
    if (parts.length) node.replaceWith(...parts, text.slice(end));
  }
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
