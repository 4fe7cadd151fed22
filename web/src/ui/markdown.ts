/** Markdown as HTML that can do no harm: no scripts, no styles, no forms, nothing loaded from elsewhere. */
import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";
import { REFERENCE } from "./footnotes";
import { formulas } from "./formulas";
import { isOdd } from "./odd";

/** Beyond it a text is shown as it is: parsing could take seconds. */
const LONGEST = 60_000;

const TAGS = [
  "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span",
  "strong", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul", "input",
];

const HANDLE = /(^|[^\p{L}\p{N}_@/.-])@([\p{L}\p{N}][\p{L}\p{N}_-]*)/gu;

export interface Mentions {
  /** Whom `@handle` means; those that it means nobody stay as they are. */
  known: ReadonlyMap<string, string>;
  /** The reader's own handle. */
  me?: string;
  classOf: (mine: boolean) => string;
}

/** What a text refers to, and how it is shown. */
export interface Reading {
  /** Whether pictures of other sites are shown; otherwise they are links. */
  pictures?: boolean;
  mentions?: Mentions;
  /** The labels of the footnotes, in the order of their numbers. */
  notes?: readonly string[];
  /** The id of a footnote, and of the place that refers to it. */
  idOf?: (number: number, what: "note" | "reference") => string;
}

let reading: Reading = {};

const marked = new Marked(
  {
    gfm: true,
    breaks: true,
    renderer: {
      // A picture is loaded from elsewhere, and tells that it was read: it is shown as a link unless that is allowed.
      image({ href, text }: Tokens.Image): string {
        if (reading.pictures && /^https:\/\//i.test(href)) return `<img src="${escaped(href)}" alt="${escaped(text)}">`;
        return `<a href="${escaped(href)}">${escaped(text || href)}</a>`;
      },
      html({ text }: Tokens.HTML | Tokens.Tag): string {
        return escaped(text);
      },
    },
  },
  formulas,
  {
    extensions: [
      {
        name: "footnote",
        level: "inline",
        start: (text) => text.indexOf("[^"),
        tokenizer(text) {
          const found = REFERENCE.exec(text);
          const number = found && (reading.notes ?? []).indexOf(found[1]!) + 1;
          return found && number ? { type: "footnote", raw: found[0], number } : undefined;
        },
        renderer: ({ number }) => `<sup class="footnote"><a href="#note-${Number(number)}">${Number(number)}</a></sup>`,
      },
    ],
  },
);

/** The HTML of a text; null where it is too long or too odd to be read as Markdown. */
export function toHtml(text: string, how: Reading = {}): string | null {
  if (text.length > LONGEST || isOdd(text)) return null;
  let html: string;
  reading = how;
  try {
    html = marked.parse(text, { async: false });
  } catch {
    return null;
  }
  const { mentions, idOf } = how;
  const safe = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: how.pictures ? [...TAGS, "img"] : TAGS,
    ALLOWED_ATTR: ["href", "class", "type", "checked", "disabled", "start", "align", ...(how.pictures ? ["src", "alt"] : [])],
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#note-\d+$)/i,
    // Without this, their values would have to be addresses.
    ADD_URI_SAFE_ATTR: ["type", "start", "align"],
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of safe.querySelectorAll("a")) {
    const number = Number(/^#note-(\d+)$/.exec(link.getAttribute("href") ?? "")?.[1] ?? 0);
    if (number && link.parentElement?.className === "footnote" && idOf) {
      link.setAttribute("href", `#${idOf(number, "note")}`);
      link.setAttribute("aria-label", `Footnote ${number}`);
      const again = safe.querySelector(`#${CSS.escape(idOf(number, "reference"))}`);
      if (again === null) link.id = idOf(number, "reference");
      continue;
    }
    if (number) link.removeAttribute("href");
    link.setAttribute("rel", "noopener noreferrer nofollow");
    link.setAttribute("target", "_blank");
  }
  for (const picture of safe.querySelectorAll("img")) {
    picture.loading = "lazy";
    picture.referrerPolicy = "no-referrer";
  }
  for (const box of safe.querySelectorAll("input")) {
    if (box.type !== "checkbox") box.remove();
    else {
      box.setAttribute("disabled", "");
      box.setAttribute("aria-label", box.hasAttribute("checked") ? "Done" : "To do");
    }
  }
  // Wider than a phone: it is scrolled by itself, with the keyboard as well.
  for (const table of safe.querySelectorAll("table")) {
    const box = document.createElement("div");
    box.className = "table-box";
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Table");
    table.replaceWith(box);
    box.append(table);
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
