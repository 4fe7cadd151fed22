import { createContext, memo, type MouseEvent, type ReactNode, useContext, useEffect, useId, useMemo, useRef } from "react";
import { classes } from "./classes";
import { Code } from "./Code";
import { Diagram } from "./Diagram";
import { type Part, split } from "./fences";
import { footnotes } from "./footnotes";
import { DISPLAY, INLINE } from "./formulas";
import { type Mentions, type Reading, toHtml } from "./markdown";
import css from "./ui.module.css";

/** Whether pictures of other sites are shown in texts. */
export const RemotePictures = createContext(false);

interface MarkdownProps {
  text: string;
  /** Handles to be marked, with the names of whom they mean. */
  known?: ReadonlyMap<string, string>;
  /** The reader's own handle. */
  me?: string;
  /** Whether it is still being written: then what stands before its last paragraph is not read again with each word. */
  growing?: boolean;
}

/** Markdown, made harmless. Fenced code is shown by `Code`; what cannot be read as Markdown is shown as it is. */
export const Markdown = memo(function Markdown({ text, known, me, growing }: MarkdownProps): ReactNode {
  const { text: body, notes } = useMemo(() => footnotes(text), [text]);
  const parts = useMemo(() => (growing ? split(body).flatMap(cut) : split(body)), [body, growing]);
  const id = useId();
  const pictures = useContext(RemotePictures);
  const mentions = useMemo<Mentions | undefined>(
    () => known && { known, me, classOf: (mine) => classes(css.mention, mine && css.me) },
    [known, me],
  );
  const labels = notes.map((each) => each.label).join("\n");
  const reading = useMemo<Reading>(
    () => ({ mentions, pictures, notes: labels ? labels.split("\n") : [], idOf: (number, what) => `${id}-${what}-${number}` }),
    [mentions, pictures, labels, id],
  );
  return (
    <div className={css.markdown} dir="auto" onClick={followFootnote}>
      {parts.map((part, index) => {
        if (part.code === undefined) return <Prose key={index} text={part.text} reading={reading} />;
        if (part.language === "mermaid" && !growing) return <Diagram key={index} text={part.code} />;
        return <Code key={index} text={part.code} language={part.language} />;
      })}
      {notes.length > 0 && (
        <ol className={css.footnotes} aria-label="Footnotes">
          {notes.map((each, index) => (
            <li key={each.label} id={`${id}-note-${index + 1}`} tabIndex={-1}>
              <Prose text={each.text} reading={reading} />
              <a href={`#${id}-reference-${index + 1}`} aria-label={`Back to the text of footnote ${index + 1}`}>
                ↩
              </a>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
});

/** Footnotes are in the page already: the address stays as it is. */
function followFootnote(event: MouseEvent): void {
  const href = (event.target as Element).closest("a")?.getAttribute("href");
  if (!href?.startsWith("#")) return;
  event.preventDefault();
  const there = document.getElementById(href.slice(1));
  there?.scrollIntoView({ block: "nearest" });
  there?.focus();
}

/** Prose without its last paragraph, and that. */
function cut(part: Part, index: number, all: Part[]): Part[] {
  const end = part.code === undefined && index === all.length - 1 ? part.text.lastIndexOf("\n\n") : -1;
  return end <= 0 ? [part] : [{ text: part.text.slice(0, end) }, { text: part.text.slice(end) }];
}

function Prose({ text, reading }: { text: string; reading: Reading }): ReactNode {
  const html = useMemo(() => toHtml(text, reading), [text, reading]);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const found = box.current?.querySelectorAll<HTMLElement>(`code.${INLINE}, code.${DISPLAY}`);
    if (!found?.length) return;
    let current = true;
    void import("./typeset").then(({ typeset }) => {
      if (current) for (const each of found) typeset(each);
    });
    return () => {
      current = false;
    };
  }, [html]);
  useEffect(() => {
    // One that cannot be loaded, or that the page's policy keeps out, becomes a link. Such events do not bubble.
    const there = box.current;
    const onError = (event: Event): void => {
      if (event.target instanceof HTMLImageElement) event.target.replaceWith(linkTo(event.target));
    };
    there?.addEventListener("error", onError, true);
    return () => there?.removeEventListener("error", onError, true);
  }, [html]);
  if (html === null) return <Raw text={text} />;
  return <div ref={box} className={css.markdown} dangerouslySetInnerHTML={{ __html: html }} />;
}

function linkTo(picture: HTMLImageElement): HTMLAnchorElement {
  const link = document.createElement("a");
  link.href = picture.src;
  link.rel = "noopener noreferrer nofollow";
  link.target = "_blank";
  link.textContent = picture.alt || picture.src;
  return link;
}

const SHOWN_RAW = 20_000;

function Raw({ text }: { text: string }): ReactNode {
  return (
    <p className={css.raw}>
      {text.slice(0, SHOWN_RAW)}
      {text.length > SHOWN_RAW && "…"}
    </p>
  );
}
