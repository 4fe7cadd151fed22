import { BookOpenText, Download, Ellipsis, LogOut, Pencil, Pin, Search, Users } from "lucide-react";
import { lazy, type ReactNode, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link, Redirect } from "wouter";
import { type Message, put } from "../denizen/api";
import { useDownload } from "../denizen/download";
import { useMe, useNamesakes, useSpace } from "../denizen/hooks";
import { useLive, useStore } from "../denizen/live";
import { hasLater, unread } from "../denizen/store";
import { Page, useTitle } from "../shell/Page";
import { HeadButton, TalkPage } from "../shell/TalkPage";
import { Avatar } from "../ui/Avatar";
import { buttonClass } from "../ui/Button";
import { classes } from "../ui/classes";
import { Menu } from "../ui/Menu";
import { Empty, Skeleton } from "../ui/States";
import type { WriteBoxHandle } from "../ui/WriteBox";
import { Composer } from "./Composer";
import { Announcer } from "./Announcer";
import { type Around, AroundContext, unsavedEdits } from "./context";
import css from "./conversation.module.css";
import { Leave, Members } from "./Members";
import { type ListHandle, MessageList, type Target } from "./MessageList";
import { Notices } from "./Notices";
import { Pins } from "./Pins";
import { Rename } from "./Rename";
import { quoted } from "./quoted";
import { StatusLine } from "./StatusLine";
import { useConversation } from "./useConversation";

const Came = lazy(() => import("../memory/Conversation"));

/** A space: what was said there, what happens, and where one writes. `at` is the message that the address names. */
export function SpacePage({ id, at }: { id: string; at?: number }): ReactNode {
  const loaded = useLive((state) => state.loaded);
  const space = useSpace(id);
  // A panel has a screen of its own.
  if (space?.info.kind === "panel") return <Redirect to={`/panels/${id}${at === undefined ? "" : `?m=${at}`}`} replace />;
  // Of a space that the stream tells of first, it is not known yet who is in it: at least the reader.
  if (space?.info.members.length) return <Inside id={id} at={at ?? null} />;
  const missing = loaded && space === undefined;
  return (
    <Page title={missing ? "Not found" : ""}>
      {missing ? (
        <Empty title="Space not found.">
          <p>It does not exist, or you are not a member. A member can add you.</p>
        </Empty>
      ) : (
        <Skeleton lines={9} label="Loading messages" />
      )}
    </Page>
  );
}

function Inside({ id, at }: { id: string; at: number | null }): ReactNode {
  const me = useMe();
  const store = useStore();
  const space = useSpace(id)!;
  const hint = useNamesakes().get(id);
  const [target, setTarget] = useTarget(id, at);
  const conversation = useConversation(id, target?.seq ?? null);
  const list = useRef<ListHandle>(null);
  const composer = useRef<WriteBoxHandle>(null);
  const [replyTo, setReplyTo] = useState<Message | null>(null);
  const [editing, setEditing] = useState<string | null>(() => [...unsavedEdits].findLast(([, edit]) => edit.space === id && edit.by === me.id)?.[0] ?? null);
  const [dialog, setDialog] = useState<"members" | "came" | "pins" | "rename" | "leave" | null>(null);
  const download = useDownload();
  const mark = useMark(id);
  const onSeen = useReadMark(id);
  useTitle(`${unread(space) > 0 ? `(${unread(space)}) ` : ""}${space.info.name}`);

  const around = useMemo<Around>(() => {
    const members = new Map(space.info.members.map((each) => [each.id, each]));
    const mine = members.get(me.id)?.role;
    return {
      space: id,
      me,
      members,
      known: new Map(space.info.members.map((each) => [each.handle, each.name])),
      runs: mine === "owner" || mine === "admin",
      find: (wanted) => store.getState().spaces[id]?.window?.find((each) => each.id === wanted),
      goTo: setTarget,
      reply: setReplyTo,
      quote: (message) => {
        setReplyTo(message);
        composer.current?.quote(quoted(message.text));
      },
      editing,
      edit: (which) => {
        setEditing(which);
        if (which === null) composer.current?.focus();
      },
    };
  }, [space.info.members, id, me, store, setTarget, editing]);
  const editLast = (): void => {
    // What one said last is still on its way: it is not the one before that is meant.
    if (store.getState().pending.some((each) => each.space === id && each.state === "sending")) return;
    const last = space.window?.findLast((each) => each.author.id === me.id && each.deleted_at === null);
    if (last) setEditing(last.id);
  };
  const toEnd = async (): Promise<void> => {
    if (hasLater(space)) await conversation.jump(null);
    list.current?.toEnd();
  };
  const actions = (
    <>
      <HeadButton aria-label={`Members: ${space.info.members.length}`} onClick={() => setDialog("members")}>
        <span className={css.stack}>
          {space.info.members.slice(0, 4).map((each) => (
            <Avatar key={each.id} name={each.name} id={each.id} kind={each.kind} size="small" />
          ))}
        </span>
        <Users size={16} aria-hidden />
        {space.info.members.length}
      </HeadButton>
      <Link href={`/search?space=${id}`} className={classes(buttonClass("quiet", true))} aria-label="Search in this space" title="Search in this space">
        <Search size={17} />
      </Link>
      <Menu
        label="Space menu"
        icon={<Ellipsis size={18} />}
        items={[
          { label: "Members", icon: <Users size={16} />, onSelect: () => setDialog("members") },
          { label: "Pinned messages", icon: <Pin size={16} />, onSelect: () => setDialog("pins") },
          { label: "Conversation summary", icon: <BookOpenText size={16} />, onSelect: () => setDialog("came") },
          {
            label: "Download the transcript",
            icon: <Download size={16} />,
            onSelect: () => download("/api/spaces/{space_id}/transcript", { path: { space_id: id } }, `${space.info.name}.md`),
          },
          { label: "Settings", icon: <Pencil size={16} />, onSelect: () => setDialog("rename") },
          { label: "Leave", icon: <LogOut size={16} />, onSelect: () => setDialog("leave"), danger: true },
        ]}
      />
    </>
  );
  return (
    <AroundContext value={around}>
      <TalkPage title={space.info.name} hint={hint} isPrivate={space.info.private} actions={actions}>
        <MessageList ref={list} space={space} conversation={conversation} target={target} mark={mark} onSeen={onSeen} onJumpToEnd={() => void toEnd()} />
        <Announcer />
        <StatusLine space={space} onStop={() => composer.current?.takeBack()} />
        <Notices space={space} />
        <Composer ref={composer} name={space.info.name} inviting={at === null} replyTo={replyTo} onReplied={() => setReplyTo(null)} onSent={() => void toEnd()} onEditLast={editLast} />
      </TalkPage>
      {dialog === "members" && <Members space={space} onClose={() => setDialog(null)} />}
      {dialog === "came" && (
        <Suspense>
          <Came space={id} name={space.info.name} last={space.info.last_seq} onClose={() => setDialog(null)} />
        </Suspense>
      )}
      {dialog === "pins" && <Pins onClose={() => setDialog(null)} />}
      {dialog === "rename" && <Rename space={space} onClose={() => setDialog(null)} />}
      {dialog === "leave" && <Leave space={space} onClose={() => setDialog(null)} />}
    </AroundContext>
  );
}

/** How far the person had read when they came, or came back to the tab: there the line stands. */
function useMark(id: string): number | null {
  const store = useStore();
  const loaded = useLive((state) => state.loaded);
  const [mark, setMark] = useState<number | null>(null);
  useEffect(() => {
    const look = (): void => {
      const space = store.getState().spaces[id];
      if (space && document.visibilityState === "visible" && unread(space) > 0) setMark(space.info.read_seq);
    };
    if (loaded) look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [store, id, loaded]);
  // Known at once where the space was known: the first drawing is already right.
  const first = useRef<number | null | undefined>(undefined);
  if (first.current === undefined) {
    const space = store.getState().spaces[id];
    first.current = loaded && space && unread(space) > 0 ? space.info.read_seq : null;
  }
  return mark ?? first.current;
}

/** A function to say what was seen: the count falls at once, and the server is told, one request at a time. */
function useReadMark(id: string): (seq: number) => void {
  const store = useStore();
  const telling = useRef(false);
  return useCallback(
    (seq: number) => {
      const readTo = (): number => store.getState().spaces[id]?.info.read_seq ?? 0;
      const tell = async (): Promise<void> => {
        telling.current = true;
        for (let told = 0; told < readTo(); ) {
          told = readTo();
          await put("/api/spaces/{space_id}/read", { path: { space_id: id }, body: { seq: told } }).catch(() => undefined);
        }
        telling.current = false;
      };
      if (store.getState().spaces[id] === undefined || seq <= readTo()) return;
      store.dispatch({ type: "read", space: id, seq });
      if (!telling.current) void tell();
    },
    [store, id],
  );
}

/** The message that the reader is to be led to: the one that the address names, or one that was pressed. */
function useTarget(id: string, at: number | null): [Target | null, (seq: number) => void] {
  const store = useStore();
  const loaded = useLive((state) => state.loaded);
  const [target, setTarget] = useState<Target | null>(null);
  const lead = useCallback(
    (seq: number) => {
      const last = store.getState().spaces[id]?.info.last_seq ?? 0;
      if (last > 0) setTarget({ seq: Math.min(Math.max(Math.round(seq) || 1, 1), last) });
    },
    [store, id],
  );
  const led = useRef<number | null>(null);
  if (at !== led.current && loaded) {
    led.current = at;
    if (at !== null) lead(at);
  }
  return [target, lead];
}
