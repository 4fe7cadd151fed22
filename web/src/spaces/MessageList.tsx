import { ArrowDown } from "lucide-react";
import { type ReactNode, type Ref, useEffect, useEffectEvent, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useLive } from "../denizen/live";
import { firstSeq, hasEarlier, hasLater, lastSeq, type SpaceState, unread } from "../denizen/store";
import { classes } from "../ui/classes";
import { ErrorState, Skeleton } from "../ui/States";
import { dayKey } from "../ui/Time";
import { CallCard, DraftCard } from "./CallCard";
import { useAround } from "./context";
import css from "./conversation.module.css";
import { type Held, hold, NOTHING_HELD, putBack, scrolledUp, spansOf } from "./held";
import { MessageRow, PendingRow, WritingRow } from "./MessageRow";
import { Nothing } from "./Nothing";
import { lastSeen, messageRows, NEAR, nextPart, type Part, partAround, partBefore, type Row, rowsIn, tailRows } from "./rows";
import type { Conversation } from "./useConversation";

/** Whoever comes this near to the end follows it from there. */
const NEAR_END = 48;
/** How far below the upper edge the first message stands that is not read. */
const UNREAD_BELOW = 64;

export interface ListHandle {
  toEnd: () => void;
}

/** A message that the reader is led to, once. */
export interface Target {
  seq: number;
}

interface Props {
  ref?: Ref<ListHandle>;
  space: SpaceState;
  conversation: Conversation;
  target: Target | null;
  /** How far the person had read when they came. */
  mark: number | null;
  /** The person has seen everything up to this message. */
  onSeen: (seq: number) => void;
  onJumpToEnd: () => void;
}

/**
 * The conversation, of which a part is drawn: what is near the screen. More is drawn, and read, when the reader comes near
 * an edge of it; what is far away is taken off. Whoever is at the end follows it; for all others, what they look at stays
 * where it is, because it is put back there before anything is painted.
 */
export function MessageList({ ref, space, conversation, target, mark, onSeen, onJumpToEnd }: Props): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const placed = useRef(false);
  const ledTo = useRef<Target | null>(null);
  const held = useRef<Held>(NOTHING_HELD);
  const lastTop = useRef(0);
  const [away, setAway] = useState(false);
  const [pointedAt, setPointedAt] = useState<number | null>(null);
  const [chosen, setChosen] = useState<Part | null>(null);

  const rows = useRows(space, mark);
  const last = lastSeq(space) ?? 0;
  const later = hasLater(space);
  const part = useMemo(() => chosen ?? partBefore(last), [chosen, last]);
  const more = later || part.to < Infinity;
  const drawn = useMemo(() => rowsIn(rows, part), [rows, part]);

  const toEnd = (): void => {
    following.current = true;
    if (part.to < Infinity) setChosen(null);
    else if (scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
  };
  useImperativeHandle(ref, () => ({ toEnd }));

  /** The message stands that far below the upper edge, or in the middle. False if it is not drawn; then it will be. */
  const show = (seq: number, below?: number): boolean => {
    const is = (row: Row): boolean => row.kind === "message" && row.message.seq === seq;
    const row = content.current!.children[drawn.findIndex(is)];
    if (row === undefined) {
      if (rows.some(is)) setChosen(partAround(seq));
      return false;
    }
    const box = scroller.current!;
    const { top, height } = row.getBoundingClientRect();
    following.current = false;
    box.scrollTop += top - box.getBoundingClientRect().top - (below ?? Math.max((box.clientHeight - height) / 2, 0));
    return true;
  };

  /** Everything stands where it should, after whatever has changed. */
  const place = (): void => {
    // The reader has left the end, and the scroll event that tells so is still to come.
    if (scrolledUp(lastTop.current, scroller.current!)) following.current = false;
    // It may still have to be read; until then the list stays where it is.
    const wanted = target === ledTo.current ? null : target;
    if (wanted !== null && show(wanted.seq)) {
      ledTo.current = wanted;
      placed.current = true;
      setPointedAt(wanted.seq);
    } else if (!placed.current) {
      if (wanted === null) begin();
    } else if (following.current && !later) toEnd();
    else putBack(held.current, scroller.current!);
  };
  /** At the first message that is not read, or at the end. */
  const begin = (): void => {
    const unreadAt = unread(space) > 0 ? rows.findIndex((row) => row.kind === "message" && row.firstUnread) : -1;
    placed.current = unreadAt < 0 || show(mark! + 1, UNREAD_BELOW);
    if (unreadAt < 0) toEnd();
  };

  /** What follows from where the reader is: more is drawn and read, messages are seen, the end is followed. */
  const look = (): void => {
    const box = scroller.current;
    // A scroll can be told after the list is gone.
    if (!box) return;
    const height = box.clientHeight;
    const below = box.scrollHeight - box.scrollTop - height;
    const spans = spansOf(content.current!.children, box);
    held.current = hold(content.current!.children, spans, box);
    if (!placed.current) return;
    if (more) following.current = false;
    else if (below <= 1) following.current = true;
    // Nothing but the reader moves up from the end.
    else if (box.scrollTop < lastTop.current) following.current = false;
    else if (box.scrollTop > lastTop.current && below < NEAR_END) following.current = true;
    lastTop.current = box.scrollTop;
    setAway(!following.current && (more || below > height / 2));
    const next = nextPart(part, rows, drawn, spans, height);
    if (next !== part) setChosen(next);
    else if (conversation.error === null) leaf(box.scrollTop < 2 * NEAR, below < 2 * NEAR);
    const seen = document.visibilityState === "visible" ? lastSeen(drawn, spans, height) : null;
    if (seen !== null) onSeen(seen);
  };

  /** More is read where everything that is there is drawn. */
  const leaf = (up: boolean, down: boolean): void => {
    if (up && hasEarlier(space) && part.from <= firstSeq(space)! + 1) conversation.loadEarlier();
    else if (down && later && part.to === Infinity) conversation.loadLater();
  };

  const settle = (): void => {
    if (!scroller.current) return;
    place();
    look();
  };
  useLayoutEffect(settle);
  const settleAgain = useEffectEvent(settle);
  const read = space.window !== null;
  useEffect(() => {
    if (!read) return;
    // Rows grow after they are drawn: code is coloured, agents go on writing.
    const observer = new ResizeObserver(() => settleAgain());
    observer.observe(content.current!);
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, [read]);
  useEffect(() => {
    const onVisible = (): void => settleAgain();
    document.addEventListener("visibilitychange", onVisible);
    return () => document.removeEventListener("visibilitychange", onVisible);
  }, []);

  if (!read) return conversation.error ? <div className={css.listFrame}><Failed conversation={conversation} /></div> : <Loading />;
  return (
    <div className={css.listFrame}>
      {/* Scrolled with the keyboard as well. */}
      <div ref={scroller} className={css.scroller} role="log" aria-label="Messages" aria-live="off" aria-busy={conversation.loading !== null} tabIndex={0} onScroll={look}>
        {rows.length === 0 ? <Nothing /> : <div className={css.filler} />}
        <div ref={content} className={css.rows}>
          {drawn.map((row) => (
            <div key={row.key} className={css.row}>
              <RowOf row={row} pointedAt={row.kind === "message" && row.message.seq === pointedAt} />
            </div>
          ))}
        </div>
      </div>
      {conversation.error !== null && <Failed conversation={conversation} />}
      <button
        type="button"
        className={classes(css.toEnd, away && css.shown)}
        tabIndex={away ? 0 : -1}
        aria-hidden={!away}
        onClick={onJumpToEnd}
      >
        <ArrowDown size={15} aria-hidden />
        {unread(space) > 0 ? `${unread(space)} new` : "Newest"}
      </button>
    </div>
  );
}

function RowOf({ row, pointedAt }: { row: Row; pointedAt: boolean }): ReactNode {
  switch (row.kind) {
    case "message":
      return <MessageRow row={row} pointedAt={pointedAt} />;
    case "call":
      return <CallCard call={row.call} />;
    case "draft":
      return <DraftCard draft={row.draft} />;
    case "writing":
      return <WritingRow writing={row.writing} continued={row.continued} />;
    case "pending":
      return <PendingRow pending={row.pending} continued={row.continued} />;
  }
}

function useRows(space: SpaceState, mark: number | null): Row[] {
  const around = useAround();
  const id = space.info.id;
  const writing = useLive((state) => state.writing);
  const drafts = useLive((state) => state.drafts);
  const pending = useLive((state) => state.pending);
  const said = useMemo(() => messageRows(space.window ?? [], space.calls, mark, dayKey), [space.window, space.calls, mark]);
  const later = hasLater(space);
  const tail = useMemo(() => {
    if (later) return [];
    const here = <T extends { space: string }>(all: Record<string, T>): T[] => Object.values(all).filter((each) => each.space === id);
    return tailRows(
      space.window?.at(-1),
      around.me.id,
      here(writing),
      here(drafts),
      pending.filter((each) => each.space === id),
    );
  }, [later, space.window, around.me.id, writing, drafts, pending, id]);
  return useMemo(() => (tail.length ? [...said, ...tail] : said), [said, tail]);
}

function Loading(): ReactNode {
  return (
    <div className={css.loading}>
      <Skeleton lines={9} label="Loading messages" />
    </div>
  );
}

function Failed({ conversation }: { conversation: Conversation }): ReactNode {
  return (
    <div className={css.loadFailed}>
      <ErrorState error={conversation.error} onRetry={conversation.retry} />
    </div>
  );
}
