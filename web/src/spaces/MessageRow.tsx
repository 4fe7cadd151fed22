import { useQuery } from "@tanstack/react-query";
import { CircleStop, ClipboardType, Copy, CornerUpLeft, Ellipsis, Link as LinkIcon, Pencil, Pin, PinOff, RotateCw, TextQuote, Trash2, X } from "lucide-react";
import { type KeyboardEvent, memo, type ReactNode, type RefObject, useDeferredValue, useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { ApiError, get, inWords, type Message, patch, post, remove } from "../denizen/api";
import { useStore } from "../denizen/live";
import { sendAgain } from "../denizen/send";
import type { Pending, Writing } from "../denizen/store";
import { Avatar } from "../ui/Avatar";
import { Button, IconButton } from "../ui/Button";
import { classes } from "../ui/classes";
import { Dialog } from "../ui/Dialog";
import { inputClass } from "../ui/Field";
import { Markdown } from "../ui/Markdown";
import { Menu, type MenuItem } from "../ui/Menu";
import { OutsideLabel } from "../ui/OutsideLabel";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import { useActWithToast } from "../ui/useAct";
import { CallCard } from "./CallCard";
import { ConnectModel, saysHowToConnect } from "./ConnectModel";
import { unsavedEdits, useAround } from "./context";
import css from "./conversation.module.css";
import { Files } from "../files/Files";
import { PinMark, usePin } from "./Pins";
import { ReactButton, Reactions } from "./Reactions";
import reactions from "./reactions.module.css";
import type { MessageRow as Row } from "./rows";
import { base } from "../denizen/base";

interface Props {
  row: Row;
  /** Someone has just been led here. */
  pointedAt: boolean;
}

/** Something that was said, with what stands above and behind it. */
export const MessageRow = memo(function MessageRow({ row, pointedAt }: Props): ReactNode {
  const { message } = row;
  return (
    <>
      {row.newDay && (
        <div className={css.day}>
          <h2>
            <Time value={message.created_at} form="day" />
          </h2>
        </div>
      )}
      {row.firstUnread && (
        <div className={css.unreadLine} role="separator" aria-label="New messages">
          <span>New</span>
        </div>
      )}
      <Said message={message} continued={row.continued} pointedAt={pointedAt} />
      {row.calls.map((call) => (
        <CallCard key={call.id} call={call} />
      ))}
    </>
  );
}, areSame);

/** Rows are made anew with each message that comes; those that say the same are not drawn again. */
function areSame(a: Props, b: Props): boolean {
  const { row: was } = a;
  const { row: is } = b;
  return (
    a.pointedAt === b.pointedAt &&
    was.message === is.message &&
    was.newDay === is.newDay &&
    was.firstUnread === is.firstUnread &&
    was.continued === is.continued &&
    was.calls.length === is.calls.length &&
    was.calls.every((call, index) => call === is.calls[index])
  );
}

function Said({ message, continued, pointedAt }: { message: Message; continued: boolean; pointedAt: boolean }): ReactNode {
  const around = useAround();
  const [asking, setAsking] = useState(false);
  const [menuOpen, setMenuOpen] = useState(false);
  const { author } = message;
  const deleted = message.deleted_at !== null;
  const mayChange = author.id === around.me.id || around.runs;
  const mentioned = message.mentions.includes(around.me.handle);
  return (
    <article
      className={classes(css.message, continued && css.continued, mentioned && css.mentioned, pointedAt && css.pointedAt, menuOpen && css.held)}
      aria-label={`${author.name}: ${deleted ? "deleted" : message.plain.slice(0, 80)}`}
      data-seq={message.seq}
    >
      <div className={css.gutter}>
        {continued ? (
          <span className={css.smallTime}>
            <Time value={message.created_at} form="clock" />
          </span>
        ) : (
          <Avatar name={author.name} id={author.id} kind={author.kind} />
        )}
      </div>
      <div className={css.content}>
        {!continued && (
          <header className={css.byline}>
            <span className={css.author}>{author.name}</span>
            {around.members.get(author.id)?.namesake && (
              <span className={css.handle} title="Another member has the same name.">
                @{around.members.get(author.id)!.handle}
              </span>
            )}
            {author.kind !== "human" && <span className={css.kind}>{author.kind}</span>}
            <span className={css.when}>
              <Time value={message.created_at} form="clock" />
            </span>
          </header>
        )}
        {message.reply_to && <Quote id={message.reply_to} />}
        {!deleted && author.kind === "agent" && typeof message.metadata.again === "string" && <Again of={message.metadata.again} />}
        {!deleted && message.pinned_at && <PinMark />}
        {around.editing === message.id ? (
          <Editor message={message} />
        ) : deleted ? (
          <p className={css.gone}>This message was deleted.</p>
        ) : (
          <>
            {message.text && <Text text={message.text} />}
            {author.kind === "agent" && saysHowToConnect(message.text) && <ConnectModel />}
            <Files files={message.files ?? []} />
            {message.edited_at && (
              <span className={css.edited}>
                edited <Time value={message.edited_at} form="short" />
              </span>
            )}
            {author.kind === "agent" && message.metadata.stopped !== undefined && <Stopped by={message.metadata.stopped} />}
            {message.edited_at && message.outside && <span className={css.edited}> · </span>}
            {message.outside && <OutsideLabel written={author.kind !== "agent"} />}
            <Reactions message={message} />
          </>
        )}
      </div>
      {!deleted && around.editing !== message.id && (
        <div className={css.actionsRail}>
          <div className={css.actions}>
            <ReactButton message={message} onToggle={setMenuOpen} />
            <IconButton label="Reply" icon={<CornerUpLeft size={16} />} onClick={() => around.reply(message)} />
            <More message={message} mayChange={mayChange} onDelete={() => setAsking(true)} onToggle={setMenuOpen} />
          </div>
        </div>
      )}
      {asking && <Delete message={message} onClose={() => setAsking(false)} />}
    </article>
  );
}

/** Says that a person stopped the answer: it has no end. */
function Stopped({ by }: { by: unknown }): ReactNode {
  const around = useAround();
  const id = by !== null && typeof by === "object" && "by" in by ? String(by.by) : "";
  const who = id === around.me.id ? "you" : around.members.get(id)?.name;
  return (
    <p className={css.stoppedMark}>
      <CircleStop size={13} aria-hidden /> Stopped{who ? ` by ${who}` : ""}
    </p>
  );
}

const LONG_CHARACTERS = 6_000;
const LONG_LINES = 80;

/** What was said; where it is very long, its beginning, and the rest on request. */
function Text({ text }: { text: string }): ReactNode {
  const around = useAround();
  const [whole, setWhole] = useState(false);
  const isLong = text.length > LONG_CHARACTERS || text.split("\n", LONG_LINES + 1).length > LONG_LINES;
  const body = <Markdown text={text} known={around.known} me={around.me.handle} />;
  if (!isLong) return body;
  return (
    <>
      <div className={whole ? undefined : css.beginning}>{body}</div>
      <Button
        small
        variant="quiet"
        aria-expanded={whole}
        onClick={({ currentTarget }) => {
          // Whoever folds it together at its end is led to what is left of it.
          flushSync(() => setWhole(!whole));
          if (whole) currentTarget.scrollIntoView({ block: "nearest" });
        }}
      >
        {whole ? "Show less" : "Show all"}
      </Button>
    </>
  );
}

function More(props: { message: Message; mayChange: boolean; onDelete: () => void; onToggle: (open: boolean) => void }): ReactNode {
  const { message, mayChange } = props;
  const around = useAround();
  const toast = useToast();
  const pin = usePin();
  const copy = async (text: string, done: string): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      toast(done);
    } catch {
      toast("The browser did not allow copying. Select the text and copy it.");
    }
  };
  const tryAgain = async (): Promise<void> => {
    try {
      await post("/api/spaces/{space_id}/messages/{message_id}/try-again", { path: { space_id: message.space_id, message_id: message.id } });
      toast(`${message.author.name} answers again. This answer stays.`);
    } catch (error) {
      toast(inWords(error));
    }
  };
  const ofAgent = message.author.kind === "agent";
  const items: MenuItem[] = [
    ...(ofAgent ? [{ label: "Try again", icon: <RotateCw size={16} />, onSelect: () => void tryAgain() }] : []),
    { label: "Quote and reply", icon: <TextQuote size={16} />, onSelect: () => around.quote(message) },
    { label: "Copy as Markdown", icon: <Copy size={16} />, onSelect: () => void copy(message.text, "Copied as Markdown.") },
    { label: "Copy as plain text", icon: <ClipboardType size={16} />, onSelect: () => void copy(message.plain, "Copied as plain text.") },
    message.pinned_at
      ? { label: "Unpin", icon: <PinOff size={16} />, onSelect: () => void pin(message, false) }
      : { label: "Pin", icon: <Pin size={16} />, onSelect: () => void pin(message, true) },
    ...(mayChange ? [{ label: "Edit", icon: <Pencil size={16} />, onSelect: () => around.edit(message.id) }] : []),
    {
      label: "Copy link",
      icon: <LinkIcon size={16} />,
      onSelect: () => void copy(`${location.origin}${base}/s/${message.space_id}/m/${message.seq}`, "Link copied."),
    },
    ...(mayChange ? [{ label: "Delete", icon: <Trash2 size={16} />, onSelect: props.onDelete, danger: true }] : []),
  ];
  return <Menu label="More" icon={<Ellipsis size={16} />} items={items} onToggle={props.onToggle} />;
}

/** Leads from another answer to the earlier one. */
function Again({ of }: { of: string }): ReactNode {
  const around = useAround();
  const { message: earlier } = useMessage(of);
  return (
    <button type="button" className={reactions.again} disabled={!earlier} onClick={() => earlier && around.goTo(earlier.seq)}>
      <RotateCw size={12} aria-hidden /> Another answer. Show the earlier one
    </button>
  );
}

/** A message of the space, wherever it stands. */
function useMessage(id: string): { message: Message | undefined; error: unknown } {
  const near = useAround().find(id);
  const far = useQuery({
    queryKey: ["message", id],
    queryFn: () => get("/api/messages/{message_id}", { path: { message_id: id } }),
    enabled: near === undefined,
    staleTime: Infinity,
  });
  return { message: near ?? far.data, error: far.error };
}

/** To what a message answers. */
function Quote({ id }: { id: string }): ReactNode {
  const around = useAround();
  const { message, error } = useMessage(id);
  const isGone = error instanceof ApiError && error.status === 404;
  if (!message) return <p className={css.quote}>{isGone ? "In reply to a deleted message" : error ? "In reply to a message that could not be loaded" : "…"}</p>;
  return (
    <button type="button" className={css.quote} onClick={() => around.goTo(message.seq)}>
      <CornerUpLeft size={13} aria-hidden />
      <strong>{message.author.name}</strong>
      <span>{message.deleted_at ? "deleted" : message.plain.slice(0, 140)}</span>
    </button>
  );
}

function Editor({ message }: { message: Message }): ReactNode {
  const around = useAround();
  const store = useStore();
  const [text, setText] = useState(() => {
    const unsaved = unsavedEdits.get(message.id);
    return unsaved?.by === around.me.id ? unsaved.text : message.text;
  });
  const { busy, run } = useActWithToast();
  const end = (): void => {
    unsavedEdits.delete(message.id);
    around.edit(null);
  };
  const mayAsk = message.author.id === around.me.id && [...around.members.values()].some((each) => each.kind === "agent");
  const save = async (ask = false): Promise<void> => {
    if (!text.trim()) return;
    if (text === message.text && !ask) return end();
    await run(async () => {
      const path = { space_id: message.space_id, message_id: message.id };
      const changed = await patch("/api/spaces/{space_id}/messages/{message_id}", { path, body: { text, ask_again: ask } });
      store.dispatch({ type: "message.edited", message: changed });
      end();
    });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Escape") {
      event.stopPropagation();
      end();
    } else if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      void save();
    }
  };
  return (
    <div className={css.editor}>
      <textarea
        aria-label="Edit message"
        className={classes(inputClass, css.editorText)}
        value={text}
        autoFocus
        dir="auto"
        onFocus={(event) => event.target.setSelectionRange(text.length, text.length)}
        onChange={(event) => {
          setText(event.target.value);
          unsavedEdits.set(message.id, { by: around.me.id, space: message.space_id, text: event.target.value });
        }}
        onKeyDown={onKeyDown}
      />
      <div className={css.editorFoot}>
        <Button small variant="quiet" onClick={end}>
          Cancel
        </Button>
        {mayAsk && (
          <Button small icon={<RotateCw size={14} />} disabled={busy || !text.trim()} onClick={() => void save(true)}>
            Save and ask again
          </Button>
        )}
        <Button small variant="primary" busy={busy} disabled={!text.trim()} onClick={() => void save()}>
          Save
        </Button>
      </div>
    </div>
  );
}

function Delete({ message, onClose }: { message: Message; onClose: () => void }): ReactNode {
  const store = useStore();
  const { busy, run } = useActWithToast();
  const confirm = (): void => {
    void run(async () => {
      const path = { space_id: message.space_id, message_id: message.id };
      const changed = await remove("/api/spaces/{space_id}/messages/{message_id}", { path });
      store.dispatch({ type: "message.deleted", message: changed });
      onClose();
    });
  };
  const footer = (
    <>
      <Button variant="quiet" onClick={onClose}>
        Cancel
      </Button>
      <Button variant="danger" busy={busy} onClick={confirm}>
        Delete
      </Button>
    </>
  );
  return (
    <Dialog title="Delete this message?" onClose={onClose} footer={footer}>
      <p>Removes its text for everyone and tells agents. This cannot be undone.</p>
    </Dialog>
  );
}

/** Text that an agent is writing. */
export const WritingRow = memo(function WritingRow({ writing, continued }: { writing: Writing; continued: boolean }): ReactNode {
  const around = useAround();
  const agent = around.members.get(writing.agent);
  const name = agent?.name ?? "An agent";
  const [ref, near] = useNear();
  // Where many write at once, typing and scrolling go first, and what nobody sees is not drawn with each word.
  const [shown, setShown] = useState(writing.text);
  if (near && shown !== writing.text) setShown(writing.text);
  const text = useDeferredValue(shown);
  return (
    <article ref={ref} className={classes(css.message, continued && css.continued)} aria-label={`${name} is writing`} aria-busy>
      <div className={css.gutter}>{!continued && <Avatar name={name} id={writing.agent} kind="agent" />}</div>
      <div className={css.content}>
        {!continued && (
          <header className={css.byline}>
            <span className={css.author}>{name}</span>
            <span className={css.kind}>agent</span>
            <span className={css.when}>writing</span>
          </header>
        )}
        {writing.replyTo && <Quote id={writing.replyTo} />}
        {text ? <Markdown growing text={text} known={around.known} me={around.me.handle} /> : <Dots />}
      </div>
    </article>
  );
});

/** Whether an element is on the screen of its list, or nearly. */
function useNear(): [RefObject<HTMLElement | null>, boolean] {
  const ref = useRef<HTMLElement>(null);
  const [near, setNear] = useState(true);
  useEffect(() => {
    const element = ref.current!;
    const list = element.closest("[role=log]");
    const observer = new IntersectionObserver((told) => setNear(told.at(-1)!.isIntersecting), { root: list, rootMargin: "400px 0px" });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, near];
}

export function Dots(): ReactNode {
  return (
    <span className={css.dots} aria-hidden>
      <i />
      <i />
      <i />
    </span>
  );
}

/** What the person said and the server has not confirmed. */
export function PendingRow({ pending, continued }: { pending: Pending; continued: boolean }): ReactNode {
  const around = useAround();
  const store = useStore();
  const failed = pending.state === "failed";
  // It stays while it is tried again: what comes and goes every few seconds is announced each time.
  const refusal = failed ? (pending.error ?? "") : pending.error;
  return (
    <article className={classes(css.message, continued && css.continued, css.pending)} aria-label={`${around.me.name}: ${pending.text.slice(0, 80)}`} aria-busy={!failed}>
      <div className={css.gutter}>{!continued && <Avatar name={around.me.name} id={around.me.id} kind={around.me.kind} />}</div>
      <div className={css.content}>
        {!continued && (
          <header className={css.byline}>
            <span className={css.author}>{around.me.name}</span>
            {pending.state === "sending" && <span className={css.when}>sending</span>}
          </header>
        )}
        {pending.replyTo && <Quote id={pending.replyTo} />}
        <div className={css.unsure}>
          <Markdown text={pending.text} known={around.known} me={around.me.handle} />
          <Files files={pending.files ?? []} />
        </div>
        {pending.state === "waiting" && refusal === undefined && <p className={css.waiting}>Waiting for a connection</p>}
        {refusal !== undefined && (
          <p className={css.failed} role="alert">
            <span>
              Not sent{failed ? "." : " yet; it is tried again every few seconds."} {refusal}
            </span>
            {failed && (
              <Button small icon={<RotateCw size={14} />} onClick={() => sendAgain(store, pending)}>
                Retry
              </Button>
            )}
            <Button small variant="quiet" icon={<X size={14} />} onClick={() => store.dispatch({ type: "dropped", key: pending.key })}>
              Discard
            </Button>
          </p>
        )}
      </div>
    </article>
  );
}
