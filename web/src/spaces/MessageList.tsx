import { ArrowDown } from "lucide-react";
import { type ReactNode, type Ref, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { useLive } from "../denizen/live";
import { hasEarlier, hasLater, type SpaceState, unread } from "../denizen/store";
import { classes } from "../ui/classes";
import { Empty, ErrorState, Skeleton } from "../ui/States";
import { dayKey } from "../ui/Time";
import { CallCard, DraftCard } from "./CallCard";
import { useAround } from "./context";
import css from "./conversation.module.css";
import { MessageRow, PendingRow, WritingRow } from "./MessageRow";
import { messageRows, type Row, tailRows } from "./rows";
import type { Conversation } from "./useConversation";

const NEAR_BOTTOM = 48;
const NEAR_EDGE = 800;
/** How long after a wheel or a key what moves is moved by the reader. */
const HAND_MILLISECONDS = 1_000;

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

/** The conversation, of which only what is near the screen is drawn. It stays where it is when more is read above. */
export function MessageList({ ref, space, conversation, target, mark, onSeen, onJumpToEnd }: Props): ReactNode {
  const list = useRef<VirtualizerHandle>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const sticking = useRef(true);
  const placed = useRef(false);
  const ledTo = useRef<Target | null>(null);
  const firstKey = useRef<number | null>(null);
  const hand = useRef(-Infinity);
  const [away, setAway] = useState(false);
  const [pointedAt, setPointedAt] = useState<number | null>(null);

  const rows = useRows(space, mark);
  const first = space.window?.[0]?.seq ?? null;
  const later = hasLater(space);
  // While older ones come in above, what is on the screen stays where it is.
  const shift = firstKey.current !== null && first !== null && first < firstKey.current;
  const generation = useGeneration(space);

  const toEnd = useCallback(() => {
    sticking.current = true;
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  }, []);
  const touched = (): void => {
    hand.current = performance.now();
  };
  const rowOf = useCallback((seq: number): number => rows.findIndex((row) => row.kind === "message" && row.message.seq === seq), [rows]);
  const show = useCallback(
    (seq: number) => {
      const index = rowOf(seq);
      if (index < 0) return;
      sticking.current = false;
      list.current?.scrollToIndex(index, { align: "center" });
      setPointedAt(seq);
    },
    [rowOf],
  );
  useImperativeHandle(ref, () => ({ toEnd }), [toEnd]);

  /** What follows from where the reader is: more is read, messages are seen, the end is followed. */
  const look = useCallback(() => {
    const box = scroller.current;
    if (!box || !placed.current) return;
    const below = box.scrollHeight - box.scrollTop - box.clientHeight;
    if (later) sticking.current = false;
    else if (below < NEAR_BOTTOM) sticking.current = true;
    // Rows that turn out higher than they were thought to be are no reason to let go of the end: the reader's hand is.
    else if (performance.now() - hand.current < HAND_MILLISECONDS) sticking.current = false;
    setAway(!sticking.current && (later || below > box.clientHeight / 2));
    if (box.scrollTop < NEAR_EDGE && hasEarlier(space)) conversation.loadEarlier();
    else if (below < NEAR_EDGE && later) conversation.loadLater();
    if (document.visibilityState === "visible") {
      const seen = lastSeen(rows, list.current, box, below);
      if (seen !== null) onSeen(seen);
    }
  }, [space, later, conversation, rows, onSeen]);

  useLayoutEffect(() => {
    firstKey.current = first;
    if (space.window === null) return;
    if (target !== ledTo.current) {
      // It may still have to be read; until then the list stays where it is.
      if (target === null || rowOf(target.seq) < 0) return;
      ledTo.current = target;
      placed.current = true;
      show(target.seq);
    } else if (!placed.current) {
      placed.current = true;
      const unreadAt = mark === null ? -1 : rowOf(mark + 1);
      if (unreadAt > 0 && unread(space) > 0) {
        sticking.current = false;
        list.current?.scrollToIndex(unreadAt, { align: "start", offset: -64 });
      } else toEnd();
    } else if (sticking.current && !later) toEnd();
    look();
  });
  useEffect(() => {
    // Rows grow after they are drawn: code is coloured, agents go on writing.
    const observer = new ResizeObserver(() => {
      if (sticking.current && placed.current) toEnd();
    });
    if (content.current) observer.observe(content.current);
    if (scroller.current) observer.observe(scroller.current);
    return () => observer.disconnect();
  }, [toEnd, space.window === null]);
  useEffect(() => {
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [look]);

  if (space.window === null) return conversation.error ? <Failed conversation={conversation} /> : <Loading />;
  return (
    <div className={css.listFrame}>
      {/* Scrolled with the keyboard as well. */}
      <div
        ref={scroller}
        className={css.scroller}
        role="log"
        aria-label="Messages"
        aria-live="off"
        tabIndex={0}
        onWheel={touched}
        onTouchMove={touched}
        onPointerDown={touched}
        onKeyDown={touched}
      >
        <div className={css.filler} />
        {rows.length === 0 && <Nothing />}
        <div ref={content} className={css.rows}>
          <Virtualizer key={generation} ref={list} scrollRef={scroller} data={rows} shift={shift} bufferSize={600} onScroll={look}>
            {(row: Row) => (
              <div key={row.key} className={css.row}>
                <RowOf row={row} pointedAt={row.kind === "message" && row.message.seq === pointedAt} />
              </div>
            )}
          </Virtualizer>
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

/** Another number when the window is another one, which has nothing of the one before: what was measured is void. */
function useGeneration({ window }: SpaceState): number {
  const known = useRef({ first: 0, last: 0, generation: 0 });
  const first = window?.[0]?.seq ?? 0;
  const last = window?.at(-1)?.seq ?? 0;
  const { generation, ...before } = known.current;
  const apart = before.last > 0 && (first > before.last + 1 || last < before.first - 1);
  if (first !== before.first || last !== before.last) known.current = { first, last, generation: generation + (apart ? 1 : 0) };
  return known.current.generation;
}

/** The number of the last message that is on the screen. */
function lastSeen(rows: Row[], list: VirtualizerHandle | null, box: HTMLElement, below: number): number | null {
  let index = below < 4 || !list ? rows.length - 1 : list.findItemIndex(box.scrollTop + box.clientHeight) - 1;
  for (; index >= 0; index -= 1) {
    const row = rows[index];
    if (row?.kind === "message") return row.message.seq;
  }
  return null;
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

function Nothing(): ReactNode {
  return (
    <Empty title="Nothing was said here yet.">
      <p>Say hello: agents that are in this space hear it.</p>
    </Empty>
  );
}
