import { useQueryClient } from "@tanstack/react-query";
import { ArrowDown, ArrowLeft, ArrowUp, Download, Lightbulb, Pencil, Trash2, Upload, UserPlus } from "lucide-react";
import { type ChangeEvent, type KeyboardEvent, type ReactNode, useRef, useState } from "react";
import { type Advisor, inWords, type Panel, patch, post, put, remove } from "../denizen/api";
import { useDownload } from "../denizen/download";
import { Badge } from "../ui/Badge";
import { Button, IconButton } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox } from "../ui/Field";
import { AdvisorForm } from "./AdvisorForm";
import css from "./panel.module.css";
import { Suggest } from "./Suggest";
import { coloured } from "./usePanel";
import { moved } from "./words";

export type AdvisorsView = "list" | "new" | "suggest" | "import" | Advisor;

/** Who advises in a panel: made, changed, put in order, switched on and off, brought in and out. */
export function AdvisorsDialog({ panel, start, onClose }: { panel: Panel; start: AdvisorsView; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const [view, setView] = useState<AdvisorsView>(start);
  const changed = (): Promise<void> => client.invalidateQueries({ queryKey: ["panels", panel.id] });
  const back = (): void => {
    void changed();
    setView("list");
  };
  // Opened from a card: back to the card.
  const close = (): void => {
    void changed();
    onClose();
  };
  const groups = [...new Set(panel.advisors.map((each) => each.group).filter(Boolean))];
  const title = typeof view === "object" ? view.name : { list: "Advisors", new: "New advisor", suggest: "Suggested advisors", import: "Import advisors" }[view];
  return (
    <Dialog wide title={title} onClose={onClose}>
      {view !== "list" && (
        <div>
          <Button small variant="quiet" icon={<ArrowLeft size={15} />} onClick={back}>
            All advisors
          </Button>
        </div>
      )}
      {view === "list" && <List panel={panel} groups={groups} onView={setView} onChanged={changed} />}
      {view === "suggest" && <Suggest panel={panel.id} onAdded={changed} />}
      {view === "import" && <Import panel={panel.id} onDone={back} />}
      {(view === "new" || typeof view === "object") && <AdvisorForm panel={panel.id} advisor={view === "new" ? null : view} groups={groups} onDone={typeof start === "object" ? close : back} />}
    </Dialog>
  );
}

interface ListProps {
  panel: Panel;
  groups: string[];
  onView: (view: AdvisorsView) => void;
  onChanged: () => Promise<void>;
}

function List({ panel, groups, onView, onChanged }: ListProps): ReactNode {
  const [error, setError] = useState<unknown>(null);
  const download = useDownload();
  const [said, setSaid] = useState("");
  const path = { panel_id: panel.id };
  // What was changed is on the screen at once, and stays until the server has done all of it and was asked again.
  const [ahead, setAhead] = useState<Advisor[] | null>(null);
  const advisors = ahead ?? panel.advisors;
  const under = useRef({ way: 0, last: Promise.resolve() });
  const act = (work: () => Promise<unknown>): void => {
    const attempt = async (): Promise<void> => {
      try {
        await work();
      } catch (problem) {
        setError(problem);
      }
      if (under.current.way === 1) await onChanged();
      under.current.way -= 1;
      if (under.current.way === 0) setAhead(null);
    };
    setError(null);
    under.current.way += 1;
    under.current.last = under.current.last.then(attempt);
  };
  const switchTo = (one: Advisor, active: boolean): void => {
    setAhead(advisors.map((each) => (each.id === one.id ? { ...each, active } : each)));
    act(() => patch("/api/panels/{panel_id}/advisors/{advisor_id}", { path: { ...path, advisor_id: one.id }, body: { active } }));
  };
  const drop = (one: Advisor): void => {
    setAhead(advisors.filter((each) => each.id !== one.id));
    act(() => remove("/api/panels/{panel_id}/advisors/{advisor_id}", { path: { ...path, advisor_id: one.id } }));
  };
  const move = (at: number, by: number): void => {
    const order = moved(advisors, at, by);
    const place = order.indexOf(advisors[at]!);
    if (place === at) return;
    setAhead(order);
    setSaid(`${advisors[at]!.name} is number ${place + 1} of ${order.length} now.`);
    act(() => put("/api/panels/{panel_id}/advisors/order", { path, body: { advisors: order.map((each) => each.id) } }));
  };
  const onKeyDown = (event: KeyboardEvent, at: number): void => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by === undefined || !event.altKey) return;
    event.preventDefault();
    move(at, by);
  };
  return (
    <>
      {advisors.length === 0 && <p className={css.faint}>No advisors yet: a plain assistant answers.</p>}
      {advisors.length > 0 && (
        <ul className={css.advisors} aria-label="Advisors" aria-busy={ahead !== null}>
          {advisors.map((each, at) => (
            <li key={each.id} ref={coloured(each.colour)} data-active={each.active} onKeyDown={(event) => onKeyDown(event, at)}>
              <span className={css.swatch} aria-hidden />
              <div className={css.advisorWho}>
                <p>
                  <strong>{each.name}</strong> <span className={css.faint}>@{each.handle}</span> {each.group && <Badge>{each.group}</Badge>}
                </p>
                {each.description && <p className={css.faint}>{each.description}</p>}
              </div>
              <label className={css.switch} title={each.active ? "Answers when no advisor is addressed" : "Answers only when addressed"}>
                <input
                  type="checkbox"
                  role="switch"
                  aria-label={`${each.name} is active`}
                  checked={each.active}
                  onChange={(event) => switchTo(each, event.target.checked)}
                />
              </label>
              <span className={css.rowActions}>
                <IconButton label={`Move ${each.name} up`} icon={<ArrowUp size={15} />} disabled={at === 0} onClick={() => move(at, -1)} />
                <IconButton label={`Move ${each.name} down`} icon={<ArrowDown size={15} />} disabled={at === advisors.length - 1} onClick={() => move(at, 1)} />
                <IconButton label={`Edit ${each.name}`} icon={<Pencil size={15} />} onClick={() => onView(each)} />
                <IconButton label={`Remove ${each.name}`} icon={<Trash2 size={15} />} onClick={() => drop(each)} />
              </span>
            </li>
          ))}
        </ul>
      )}
      <div role="status" className="visually-hidden">
        {said}
      </div>
      {groups.length > 0 && (
        <div className={css.groups} role="group" aria-label="Groups">
          {groups.map((group) => {
            const on = advisors.some((each) => each.group === group && each.active);
            return (
              <Button key={group} small aria-pressed={on} onClick={() => act(() => put("/api/panels/{panel_id}/advisors/group", { path, body: { group, active: !on } }))}>
                {on ? `Switch ${group} off` : `Switch ${group} on`}
              </Button>
            );
          })}
        </div>
      )}
      {error !== null && (
        <p className={css.failure} role="alert">
          {inWords(error)}
        </p>
      )}
      <div className={css.listFoot}>
        <Button variant="primary" icon={<UserPlus size={16} />} onClick={() => onView("new")}>
          New advisor
        </Button>
        <Button icon={<Lightbulb size={16} />} onClick={() => onView("suggest")}>
          Suggest
        </Button>
        <Button icon={<Upload size={16} />} onClick={() => onView("import")}>
          Import
        </Button>
        {panel.advisors.length > 0 && (
          <Button
            icon={<Download size={16} />}
            // What the server has not done yet would not be in the file.
            disabled={ahead !== null}
            onClick={() => download("/api/panels/{panel_id}/advisors/export", { path }, `${panel.name} advisors.json`)}
          >
            Export
          </Button>
        )}
      </div>
    </>
  );
}

/** Advisors from a file that was taken along from another panel. */
function Import({ panel, onDone }: { panel: string; onDone: () => void }): ReactNode {
  const [given, setGiven] = useState<{ name: string; format: string; advisors: Record<string, unknown>[] } | null>(null);
  const [replace, setReplace] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const read = async (event: ChangeEvent<HTMLInputElement>): Promise<void> => {
    setGiven(null);
    setError(null);
    const file = event.target.files?.[0];
    if (!file) return;
    try {
      const told = JSON.parse(await file.text());
      if (!Array.isArray(told?.advisors)) throw new Error("This file has no advisors.");
      setGiven({ name: file.name, format: String(told.format ?? ""), advisors: told.advisors });
    } catch (problem) {
      setError(problem instanceof SyntaxError ? new Error("This file is not JSON. Choose a file exported from a panel.") : problem);
    }
  };
  const bring = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await post("/api/panels/{panel_id}/advisors/import", { path: { panel_id: panel }, body: { format: given!.format, advisors: given!.advisors, replace } });
      onDone();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <div className={css.form}>
      <label className={css.file}>
        <span>File exported from a panel (JSON)</span>
        <input type="file" accept="application/json,.json" onChange={(event) => void read(event)} />
      </label>
      {given && <p>In it: {given.advisors.map((each) => String(each["name"] ?? "?")).join(", ")}.</p>}
      <Checkbox label="Replace the current advisors" hint="Their replies stay." checked={replace} onChange={(event) => setReplace(event.target.checked)} />
      {error !== null && (
        <p className={css.failure} role="alert">
          {inWords(error)}
        </p>
      )}
      <DialogFoot>
        <Button variant="primary" busy={busy} disabled={!given?.advisors.length} onClick={() => void bring()}>
          {given ? `Import ${given.advisors.length}` : "Import"}
        </Button>
      </DialogFoot>
    </div>
  );
}
