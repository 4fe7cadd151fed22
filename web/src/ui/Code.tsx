import { Check, Copy } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { IconButton } from "./Button";
import { classes } from "./classes";
import "./code.css";
import css from "./ui.module.css";

/** Code in a box of its own, coloured where its language is known, to be copied with a press. */
export function Code({ text, language, label = "Code" }: { text: string; language?: string; label?: string }): ReactNode {
  const html = useHighlighted(text, language);
  return (
    <div className={css.code}>
      {/* It may be wider than its box: then it is scrolled, with the keyboard as well. */}
      <pre tabIndex={0} role="region" aria-label={language ? `${label}, ${language}` : label} dir="ltr">
        {html === null ? <code>{text}</code> : <code dangerouslySetInnerHTML={{ __html: html }} />}
      </pre>
      <CopyButton text={text} className={css.codeCopy} />
    </div>
  );
}

/** A button that puts a text where it can be pasted from. */
export function CopyButton({ text, label = "Copy", className }: { text: string; label?: string; className?: string }): ReactNode {
  const [copied, setCopied] = useState(false);
  // Until one turns away: whoever looks a while later still sees that it was done.
  const away = (): void => setCopied(false);
  return (
    <IconButton
      className={classes(className)}
      label={copied ? "Copied" : label}
      icon={copied ? <Check size={16} /> : <Copy size={16} />}
      onMouseLeave={away}
      onBlur={away}
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
    />
  );
}

function useHighlighted(text: string, language?: string): string | null {
  const [html, setHtml] = useState<{ of: string; html: string | null } | null>(null);
  useEffect(() => {
    if (!language) return;
    let current = true;
    void import("./highlight").then(({ highlighted }) => {
      if (current) setHtml({ of: text, html: highlighted(text, language) });
    });
    return () => {
      current = false;
    };
  }, [text, language]);
  return html?.of === text ? html.html : null;
}
