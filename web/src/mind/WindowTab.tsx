import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../denizen/api";
import { percent, short, whole } from "../ui/amounts";
import { OutsideLabel } from "../ui/OutsideLabel";
import { Loaded } from "../ui/States";
import { useLife, useMindOf, useStep } from "./asking";
import { Tools } from "./ExactRequest";
import css from "./mind.module.css";
import { Fold, Words } from "./parts";
import { useMind } from "./watch";

/** One layer as it is drawn. The layers before the window are two: groups of cycles, and lines. */
interface Layer {
  id: "self" | "tools" | "groups" | "lines" | "recalled" | "recent" | "open" | "free";
  label: string;
  about: string;
  tokens: number;
  part: Schemas["WindowPart"];
  sections: Schemas["WindowSection"][];
}

/** What its next request would hold, drawn as layers up to the budget; each can be read. */
export function WindowTab({ at }: { at: string }): ReactNode {
  const { agent } = useMind();
  const mind = useMindOf(agent.id);
  return (
    <Loaded query={mind} lines={12}>
      {(found) => <Chart mind={found} at={at} />}
    </Loaded>
  );
}

function Chart({ mind, at }: { mind: Schemas["MindOut"]; at: string }): ReactNode {
  const { window } = mind;
  const layers = layersOf(window);
  const [chosen, setChosen] = useState<Layer["id"]>("self");
  const [pointed, setPointed] = useState<Layer["id"] | null>(null);
  const shown = layers.find((each) => each.id === chosen) ?? layers[0]!;
  return (
    <>
      <section className={css.section} aria-label="The window">
        <div className={css.sectionHead}>
          <h2>
            {short(window.used)} of {short(window.limit)} tokens
          </h2>
          <p className={css.meta}>
            <span>{percent(window.limit ? window.used / window.limit : 0)} full</span>
            <span>era {window.era}</span>
          </p>
        </div>
        <Stack layers={layers} limit={window.limit} pointed={pointed} onPoint={setPointed} onChoose={setChosen} />
        <ul className={css.legend}>
          {layers.map((layer) => (
            <li key={layer.id}>
              <button
                type="button"
                className={css.legendItem}
                aria-pressed={layer.id === shown.id}
                onClick={() => setChosen(layer.id)}
                onMouseEnter={() => setPointed(layer.id)}
                onMouseLeave={() => setPointed(null)}
                onFocus={() => setPointed(layer.id)}
                onBlur={() => setPointed(null)}
              >
                <span className={css.swatch} data-layer={layer.id} />
                <span className={css.legendName}>{layer.label}</span>
                <span className={css.legendTokens}>{whole(layer.tokens)}</span>
                <span className={css.legendShare}>{percent(window.limit ? layer.tokens / window.limit : 0)}</span>
              </button>
            </li>
          ))}
        </ul>
        <p className={css.aside}>Tokens are estimated. When the window is full, older cycles are replaced by one line each, then by summaries of groups. Nothing is deleted.</p>
      </section>
      <section className={css.section} aria-label={shown.label}>
        <h2>{shown.label}</h2>
        <p className={css.aside}>{shown.about}</p>
        <Content layer={shown} mind={mind} at={at} />
      </section>
    </>
  );
}

/** From where each layer reaches to where, in hundredths of the budget. */
function Stack({ layers, limit, pointed, onPoint, onChoose }: { layers: Layer[]; limit: number; pointed: Layer["id"] | null; onPoint: (id: Layer["id"] | null) => void; onChoose: (id: Layer["id"]) => void }): ReactNode {
  const whole = Math.max(
    limit,
    layers.filter((each) => each.id !== "free").reduce((sum, each) => sum + each.tokens, 0),
    1,
  );
  let from = 0;
  const said = layers.map((each) => `${each.label} ${each.tokens} tokens`).join(", ");
  return (
    <svg className={css.stack} viewBox="0 0 1000 44" preserveAspectRatio="none" role="img" aria-label={`The window: ${said}`}>
      {layers.map((layer) => {
        // What is there can be seen, however little it is.
        const width = layer.tokens > 0 ? Math.max((layer.tokens / whole) * 1000, 4) : 0;
        const x = from;
        from += width;
        return (
          <rect
            key={layer.id}
            x={x}
            width={Math.max(Math.min(width, 1000 - x) - 1, 0)}
            height={44}
            data-layer={layer.id}
            data-pointed={layer.id === pointed || undefined}
            onMouseEnter={() => onPoint(layer.id)}
            onMouseLeave={() => onPoint(null)}
            onClick={() => onChoose(layer.id)}
          />
        );
      })}
    </svg>
  );
}

function Content({ layer, mind, at }: { layer: Layer; mind: Schemas["MindOut"]; at: string }): ReactNode {
  switch (layer.id) {
    case "self":
    case "recalled":
      return layer.part.text ? <p className={css.keptWords}>{layer.part.text}</p> : <p className={css.nothing}>Created with the next cycle.</p>;
    case "tools":
      return <OfferedTools mind={mind} />;
    case "groups":
    case "lines":
      return (
        <div>
          {layer.part.outside && <OutsideLabel />}
          {layer.sections.map((section) => (
            <Fold key={section.first_cycle} open={layer.sections.length === 1} title={`Cycles ${whole(section.first_cycle)} to ${whole(section.last_cycle)} · ${whole(section.tokens)} tokens`}>
              <p className={css.keptWords}>{section.text}</p>
            </Fold>
          ))}
        </div>
      );
    case "recent":
      return <Recent first={layer.part.first_cycle ?? 1} at={at} />;
    case "open":
      return (
        <p>
          <Link href={`${at}/now`}>Show current activity</Link>
        </p>
      );
    case "free":
      return null;
  }
}

function OfferedTools({ mind }: { mind: Schemas["MindOut"] }): ReactNode {
  const last = mind.last_cycles[0];
  const request = useStep(mind.id, last?.number ?? 0, 0, last?.number != null);
  if (last?.number == null) return <p className={css.nothing}>No cycles yet.</p>;
  return (
    <Loaded query={request} lines={4}>
      {(found) => (found.tools ? <Tools tools={found.tools} /> : <p className={css.nothing}>Not stored.</p>)}
    </Loaded>
  );
}

function Recent({ first, at }: { first: number; at: string }): ReactNode {
  const { agent, watched } = useMind();
  const life = useLife(agent.id, `${watched.endings}`);
  return (
    <Loaded query={life} lines={5}>
      {({ pages }) => (
        <ul className={css.recent}>
          {pages
            .flatMap((page) => page.cycles)
            .filter((cycle) => cycle.number !== null && cycle.number >= first)
            .map((cycle) => (
              <li key={cycle.id}>
                <Link href={`${at}/life/${cycle.number}`}>Cycle {cycle.number}</Link>
                <Words text={cycle.summary} plain />
              </li>
            ))}
        </ul>
      )}
    </Loaded>
  );
}

function layersOf(window: Schemas["WindowOut"]): Layer[] {
  return window.parts.flatMap((part): Layer[] => {
    const layer = (id: Layer["id"], label: string, about: string, tokens = part.tokens, sections: Layer["sections"] = []): Layer => ({ id, label, about, tokens, part, sections });
    const span = part.first_cycle && part.last_cycle ? ` (${whole(part.first_cycle)} to ${whole(part.last_cycle)})` : "";
    switch (part.part) {
      case "self":
        return [layer("self", "Self", "Its instructions, spaces, members, goals, notes and plans. Fixed for an era so that the provider can cache it.")];
      case "tools":
        return [layer("tools", "Tools", "Tool definitions as the model reads them.")];
      case "layers": {
        const groups = part.sections.filter((each) => each.kind === "group");
        const lines = part.sections.filter((each) => each.kind === "lines");
        const linesTokens = lines.reduce((sum, each) => sum + each.tokens, 0);
        return [
          ...(groups.length ? [layer("groups", "Groups of older cycles", "Summaries of 10, 100 and 1,000 cycles.", Math.max(part.tokens - linesTokens, 0), groups)] : []),
          ...(lines.length ? [layer("lines", "One line per cycle", "Cycles that left the window, each as its closing summary.", groups.length ? linesTokens : part.tokens, lines)] : []),
        ];
      }
      case "recalled":
        return [layer("recalled", "Recalled", "Found in its history because it relates to the new messages. Dropped first when space is short.")];
      case "recent":
        return [layer("recent", `Recent cycles in full${span}`, "Messages, thinking, actions and results in full.")];
      case "open":
        return [layer("open", "Current cycle", "What the model sees of the current cycle.")];
      case "free":
        return [layer("free", "Free", "Space for new messages.")];
    }
  });
}
