import { Download, Ellipsis, FileText, Lightbulb, LogOut, Settings2, Smile, Upload, Users, UsersRound } from "lucide-react";
import { type ReactNode, type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { type Advisor, ApiError, type Panel, put, type Round } from "../denizen/api";
import { useDownload } from "../denizen/download";
import { useNamesakes, useSpace } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { Files } from "../files/Files";
import { Page, useTitle } from "../shell/Page";
import { HeadButton, TalkPage } from "../shell/TalkPage";
import { Leave, Members } from "../spaces/Members";
import { Notices } from "../spaces/Notices";
import { Avatar } from "../ui/Avatar";
import { Button } from "../ui/Button";
import { Markdown } from "../ui/Markdown";
import { Menu } from "../ui/Menu";
import { Empty, ErrorState, Skeleton } from "../ui/States";
import { Time } from "../ui/Time";
import { useActWithToast } from "../ui/useAct";
import { AdvisorsDialog, type AdvisorsView } from "./AdvisorsDialog";
import { AssertionsDialog } from "./AssertionsDialog";
import { Composer } from "./Composer";
import { MindsDialog } from "./MindsDialog";
import css from "./panel.module.css";
import { RoundView } from "./RoundView";
import { SettingsDialog } from "./SettingsDialog";
import { Suggest } from "./Suggest";
import { AroundContext, coloured, useAround, useAroundOf, useNamed, usePanel, useRounds } from "./usePanel";
import { turnsOf } from "./words";

/** A panel: what was asked, what each voice answered, and where one asks. */
export default function PanelPage({ id }: { id: string }): ReactNode {
  const panel = usePanel(id);
  if (panel.data) return <Inside key={id} panel={panel.data} onChanged={() => panel.refetch()} />;
  const gone = panel.error instanceof ApiError && panel.error.status === 404;
  return (
    <Page title={gone ? "Not found" : ""}>
      {gone ? (
        <Empty title="Panel not found.">
          <p>It does not exist, or you are not a member. A member can add you.</p>
        </Empty>
      ) : panel.error ? (
        <ErrorState error={panel.error} onRetry={() => void panel.refetch()} />
      ) : (
        <Skeleton lines={9} label="Loading the panel" />
      )}
    </Page>
  );
}

/** Pixels between the head and what the reader is led to. */
const LED_BELOW_TOP = 8;

type Open = "settings" | "members" | "leave" | { advisors: AdvisorsView } | { assertions: Advisor } | { mind: string | null };

function Inside({ panel, onChanged }: { panel: Panel; onChanged: () => Promise<unknown> }): ReactNode {
  const [open, setOpen] = useState<Open | null>(null);
  const around = useAroundOf(panel, useCallback((mind: string) => setOpen({ mind }), []), useCallback((advisor, what) => setOpen(what === "advisor" ? { advisors: advisor } : { assertions: advisor }), []));
  const space = useSpace(panel.id);
  const hint = useNamesakes().get(panel.id);
  const download = useDownload();
  const path = { panel_id: panel.id };
  const close = (): void => setOpen(null);
  useTitle(panel.name);
  useReadAll(panel.id);
  const active = panel.advisors.filter((each) => each.active);
  const actions = (
    <>
      <HeadButton aria-label={`Advisors: ${panel.advisors.length}`} onClick={() => setOpen({ advisors: "list" })}>
        <span className={css.stack} aria-hidden>
          {active.slice(0, 6).map((each) => (
            <span key={each.id} className={css.swatch} ref={coloured(each.colour)} />
          ))}
        </span>
        <UsersRound size={16} aria-hidden />
        <span className={css.headWord}>{active.length === 1 ? "1 advisor" : `${active.length || "No"} advisors`}</span>
      </HeadButton>
      <Menu
        label="Panel menu"
        icon={<Ellipsis size={18} />}
        items={[
          { label: "Advisors", icon: <UsersRound size={16} />, onSelect: () => setOpen({ advisors: "list" }) },
          { label: "Suggest advisors", icon: <Lightbulb size={16} />, onSelect: () => setOpen({ advisors: "suggest" }) },
          { label: "Import advisors", icon: <Upload size={16} />, onSelect: () => setOpen({ advisors: "import" }) },
          {
            label: "Export advisors",
            icon: <Download size={16} />,
            onSelect: () => download("/api/panels/{panel_id}/advisors/export", { path }, `${panel.name} advisors.json`),
          },
          {
            label: "Download the transcript",
            icon: <FileText size={16} />,
            onSelect: () => download("/api/panels/{panel_id}/transcript", { path }, `${panel.name}.md`),
          },
          { label: "States of mind", icon: <Smile size={16} />, onSelect: () => setOpen({ mind: null }) },
          { label: "Panel settings", icon: <Settings2 size={16} />, onSelect: () => setOpen("settings") },
          { label: "Members", icon: <Users size={16} />, onSelect: () => setOpen("members") },
          { label: "Leave", icon: <LogOut size={16} />, onSelect: () => setOpen("leave"), danger: true },
        ]}
      />
    </>
  );
  return (
    <AroundContext value={around}>
      <TalkPage title={panel.name} hint={hint} isPrivate={panel.private} actions={actions}>
        <Turns onChanged={onChanged} onAdvisors={(view) => setOpen({ advisors: view })} />
        {space && <Notices space={space} />}
        <Composer />
      </TalkPage>
      {typeof open === "object" && open && "advisors" in open && <AdvisorsDialog panel={panel} start={open.advisors} onClose={close} />}
      {typeof open === "object" && open && "assertions" in open && <AssertionsDialog panel={panel.id} advisor={open.assertions} onClose={close} />}
      {typeof open === "object" && open && "mind" in open && <MindsDialog panel={panel} start={open.mind} onSettings={() => setOpen("settings")} onClose={close} />}
      {open === "settings" && <SettingsDialog panel={panel} onClose={close} />}
      {open === "members" && space && <Members space={space} onClose={close} />}
      {open === "leave" && space && <Leave space={space} onClose={close} />}
    </AroundContext>
  );
}

function Turns({ onChanged, onAdvisors }: { onChanged: () => Promise<unknown>; onAdvisors: (view: AdvisorsView) => void }): ReactNode {
  const { panel } = useAround();
  const { rounds, loaded, error, reload, earlier } = useRounds(panel.id);
  const turns = useMemo(() => turnsOf(rounds), [rounds]);
  const scroller = useRef<HTMLDivElement>(null);
  useLeading(scroller, turns, loaded);
  return (
    <div className={css.scroller} ref={scroller} tabIndex={0} role="region" aria-label="Questions and answers">
      {!loaded && turns.length === 0 && (error ? <ErrorState error={error} onRetry={reload} /> : <Skeleton lines={9} label="Loading questions" />)}
      {loaded && turns.length === 0 && <Beginning onChanged={onChanged} onAdvisors={onAdvisors} />}
      {earlier && (
        <div className={css.earlier}>
          <Earlier load={earlier} />
        </div>
      )}
      {turns.map((turn, index) => (
        <Turn key={turn[0]!.turn} turn={turn} isLast={index === turns.length - 1} />
      ))}
    </div>
  );
}

function Earlier({ load }: { load: () => Promise<void> }): ReactNode {
  const { busy, run } = useActWithToast();
  return (
    <Button small busy={busy} onClick={() => void run(load)}>
      Show earlier
    </Button>
  );
}

function Turn({ turn, isLast }: { turn: Round[]; isLast: boolean }): ReactNode {
  const { known } = useAround();
  const message = turn.find((each) => each.message)?.message;
  return (
    <article className={css.turn} data-turn={turn[0]!.turn} data-seq={message?.seq} aria-label={`Turn ${turn[0]!.turn}`}>
      {message && (
        <div className={css.asked}>
          <Avatar name={message.author.name} id={message.author.id} kind={message.author.kind} />
          <div className={css.askedText}>
            <p className={css.askedHead}>
              <strong>{message.author.name}</strong> <Time value={message.created_at} />
            </p>
            {message.deleted_at ? <p className={css.faint}>This message was deleted.</p> : <Markdown text={message.text} known={known} />}
            {!message.deleted_at && <Files files={message.files ?? []} />}
          </div>
        </div>
      )}
      {turn.map((round) => (
        <RoundView key={round.id} round={round} turn={turn} isLast={isLast} />
      ))}
    </article>
  );
}

/** Before anything was asked. */
function Beginning({ onChanged, onAdvisors }: { onChanged: () => Promise<unknown>; onAdvisors: (view: AdvisorsView) => void }): ReactNode {
  const { panel } = useAround();
  // Who has begun to choose goes on, also when the first has been added.
  const [choosing] = useState(panel.advisors.length === 0);
  return (
    <div className={css.beginning}>
      {choosing ? (
        <>
          <h2>Choose your advisors</h2>
          <p className={css.faint}>Several advisors answer at once, each in its own thread. Describe your topic to get suggestions, or ask right away and a plain assistant answers.</p>
          <Suggest panel={panel.id} onAdded={onChanged} />
          <p className={css.faint}>
            <Button small variant="quiet" onClick={() => onAdvisors("new")}>
              Add an advisor
            </Button>
            <Button small variant="quiet" onClick={() => onAdvisors("import")}>
              Import from a file
            </Button>
          </p>
        </>
      ) : (
        <>
          <h2>No questions yet.</h2>
          <p className={css.faint}>These advisors answer, all at once. Use @ to ask one of them or a group.</p>
        </>
      )}
      {panel.advisors.length > 0 && (
        <ul className={css.present} aria-label="Who answers">
          {panel.advisors
            .filter((each) => each.active)
            .map((each) => (
              <li key={each.id} className={css.voice} ref={coloured(each.colour)}>
                <span className={css.swatch} aria-hidden />
                {each.name}
              </li>
            ))}
        </ul>
      )}
    </div>
  );
}

/** Leads to the last turn, or the message that the address names; and to a turn that begins. Nothing moves while they write. */
function useLeading(scroller: RefObject<HTMLDivElement | null>, turns: Round[][], loaded: boolean): void {
  const wanted = useNamed();
  const last = turns.at(-1)?.[0]?.turn;
  const rounds = turns.at(-1)?.length ?? 0;
  const led = useRef<{ turn: number; rounds: number } | null>(null);
  useLayoutEffect(() => {
    if (!loaded || last === undefined) return;
    const box = scroller.current!;
    const before = led.current;
    led.current = { turn: last, rounds };
    const named = before === null && wanted ? box.querySelector(`[data-seq="${CSS.escape(wanted)}"]`) : null;
    const turn = `[data-turn="${last}"]`;
    if (named || before?.turn !== last) lead(box, named ?? box.querySelector(turn));
    else if (rounds > before.rounds) lead(box, box.querySelector(`${turn} > section:last-of-type`));
  }, [scroller, last, rounds, loaded, wanted]);
}

/** Only the list is scrolled: `scrollIntoView` would move what stands around it as well. */
function lead(box: HTMLElement, to: Element | null): void {
  if (to) box.scrollTop += to.getBoundingClientRect().top - box.getBoundingClientRect().top - LED_BELOW_TOP;
}

/** Whoever looks at a panel has read what was said in its space. */
function useReadAll(id: string): void {
  const store = useStore();
  const space = useSpace(id);
  const seq = space?.info.last_seq ?? 0;
  const read = space?.info.read_seq ?? 0;
  useEffect(() => {
    const look = (): void => {
      if (seq <= read || document.visibilityState !== "visible") return;
      store.dispatch({ type: "read", space: id, seq });
      void put("/api/spaces/{space_id}/read", { path: { space_id: id }, body: { seq } }).catch(() => undefined);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [store, id, seq, read]);
}
