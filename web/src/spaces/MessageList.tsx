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

export interface ListHandle {
  /** Lead the reader to a message that is in the window. */
  show: (seq: number) => void;
  toEnd: () => void;
}

interface Props {
  ref?: Ref<ListHandle>;
  space: SpaceState;
  conversation: Conversation;
  /** The message that the address names. */
  at: number | null;
  /** How far the person had read when they came. */
  mark: number | null;
  /** The person has seen everything up to this message. */
  onSeen: (seq: number) => void;
  onJumpToEnd: () => void;
}

/** The conversation, of which only what is near the screen is drawn. It stays where it is when more is read above. */
export function MessageList({ ref, space, conversation, at, mark, onSeen, onJumpToEnd }: Props): ReactNode {
  const list = useRef<VirtualizerHandle>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const sticking = useRef(true);
  const placed = useRef(false);
  const firstKey = useRef<number | null>(null);
  const [away, setAway] = useState(false);
  const [pointedAt, setPointedAt] = useState<number | null>(null);

  const rows = useRows(space, mark);
  const first = space.window?.[0]?.seq ?? null;
  const later = hasLater(space);
  // While older ones come in above, what is on the screen stays where it is.
  const shift = firstKey.current !== null && first !== null && first < firstKey.current;

  const toEnd = useCallback(() => {
    sticking.current = true;
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  }, []);
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
  useImperativeHandle(ref, () => ({ show, toEnd }), [show, toEnd]);

  /** What follows from where the reader is: more is read, messages are seen, the end is followed. */
  const look = useCallback(() => {
    const box = scroller.current;
    if (!box || !placed.current) return;
    const below = box.scrollHeight - box.scrollTop - box.clientHeight;
    sticking.current = below < NEAR_BOTTOM && !later;
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
    if (!placed.current) {
      placed.current = true;
      const unreadAt = mark === null ? -1 : rowOf(mark + 1);
      if (at !== null && rowOf(at) >= 0) show(at);
      else if (unreadAt > 0 && unread(space) > 0) {
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
      <div ref={scroller} className={css.scroller} role="log" aria-label="Messages" aria-live="off" tabIndex={0}>
        <div className={css.filler} />
        {rows.length === 0 && <Nothing />}
        <div ref={content} className={css.rows}>
          <Virtualizer ref={list} scrollRef={scroller} data={rows} shift={shift} bufferSize={600} onScroll={look}>
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
