import { type ReactNode, useEffect, useState } from "react";
import { Code } from "./Code";
import css from "./ui.module.css";

/** A diagram, drawn; its text, as long as it is not drawn and where it cannot be. */
export function Diagram({ text }: { text: string }): ReactNode {
  const dark = document.documentElement.dataset["theme"] === "dark";
  const [drawn, setDrawn] = useState<{ of: string; address: string | null } | null>(null);
  useEffect(() => {
    let current = true;
    void import("./drawing")
      .then(({ draw }) => draw(text, dark))
      .then((address) => {
        if (current) setDrawn({ of: text, address });
      });
    return () => {
      current = false;
    };
  }, [text, dark]);
  if (drawn?.of !== text || drawn.address === null) return <Code text={text} language="mermaid" />;
  return (
    <figure className={css.diagram}>
      {/* It may be wider than its box: then it is scrolled, with the keyboard as well. */}
      <div tabIndex={0} role="region" aria-label="Diagram">
        <img src={drawn.address} alt={`Diagram, as its source says: ${text.trim().split("\n", 1)[0]}`} />
      </div>
      <details>
        <summary>Source</summary>
        <Code text={text} language="mermaid" />
      </details>
    </figure>
  );
}
