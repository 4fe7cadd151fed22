import { memo, type ReactNode, useMemo } from "react";
import { classes } from "./classes";
import { Code } from "./Code";
import { type Part, split } from "./fences";
import { type Mentions, toHtml } from "./markdown";
import css from "./ui.module.css";

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
  const parts = useMemo(() => (growing ? split(text).flatMap(cut) : split(text)), [text, growing]);
  const mentions = useMemo<Mentions | undefined>(
    () => known && { known, me, classOf: (mine) => classes(css.mention, mine && css.me) },
    [known, me],
  );
  return (
    <div className={css.markdown} dir="auto">
      {parts.map((part, index) =>
        part.code === undefined ? <Prose key={index} text={part.text} mentions={mentions} /> : <Code key={index} text={part.code} language={part.language} />,
      )}
    </div>
  );
});

/** Prose without its last paragraph, and that. */
function cut(part: Part, index: number, all: Part[]): Part[] {
  const end = part.code === undefined && index === all.length - 1 ? part.text.lastIndexOf("\n\n") : -1;
  return end <= 0 ? [part] : [{ text: part.text.slice(0, end) }, { text: part.text.slice(end) }];
}

function Prose({ text, mentions }: { text: string; mentions?: Mentions }): ReactNode {
  const html = useMemo(() => toHtml(text, mentions), [text, mentions]);
  if (html === null) return <Raw text={text} />;
  return <div className={css.markdown} dangerouslySetInnerHTML={{ __html: html }} />;
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
