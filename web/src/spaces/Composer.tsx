import { CornerUpLeft, X } from "lucide-react";
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useMemo } from "react";
import type { Message } from "../denizen/api";
import { useLive, useStore } from "../denizen/live";
import { send } from "../denizen/send";
import { AttachButton, ChosenFiles, DropArea } from "../files/Attaching";
import { MOST_FILES, useAttachments } from "../files/useAttachments";
import { Avatar } from "../ui/Avatar";
import { IconButton } from "../ui/Button";
import { WriteBox, type WriteBoxHandle } from "../ui/WriteBox";
import { useAround } from "./context";
import css from "./conversation.module.css";
import { useStop } from "./StatusLine";

interface Props {
  ref: RefObject<WriteBoxHandle | null>;
  name: string;
  inviting: boolean;
  replyTo: Message | null;
  onReplied: () => void;
  onSent: () => void;
  /** The arrow up, where nothing is written: to change what one said last. */
  onEditLast: () => void;
}

/** Where one says something in a space. */
export function Composer({ ref, name, inviting, replyTo, onReplied, onSent, onEditLast }: Props): ReactNode {
  const { space, me, members } = useAround();
  const store = useStore();
  const others = useMemo(() => [...members.values()].filter((each) => each.id !== me.id), [members, me.id]);
  useEffect(() => {
    if (replyTo) ref.current!.focus();
  }, [ref, replyTo]);
  const draft = `draft ${me.id} ${space}`;
  const attachments = useAttachments(draft);
  const { chosen } = attachments;
  const stop = useStop(space);
  const writes = useLive((state) => Object.values(state.writing).some((each) => each.space === space));
  const say = (text: string): void => {
    send(store, space, text, replyTo?.id ?? null, attachments.ready);
    attachments.clear(attachments.ready);
    onReplied();
    onSent();
  };
  const onKey = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    const last = event.key === "ArrowUp" && !event.altKey && event.currentTarget.value === "";
    const stops = event.key === "Escape" && !replyTo && writes && !stop.isPending;
    if (!last && !stops && !(event.key === "Escape" && replyTo)) return;
    event.preventDefault();
    if (last) onEditLast();
    else if (stops) stop.mutate();
    else onReplied();
  };
  const reply = replyTo && (
    <div className={css.reply}>
      <CornerUpLeft size={14} aria-hidden />
      <span className={css.replyText}>
        Reply to <strong>{replyTo.author.name}</strong>: {replyTo.plain.slice(0, 120)}
      </span>
      <IconButton label="Cancel reply" icon={<X size={15} />} onClick={onReplied} />
    </div>
  );
  return (
    <WriteBox
      ref={ref}
      label={`Message to ${name}`}
      placeholder={`Message ${name}`}
      draft={draft}
      whom={others}
      choice="Mention"
      face={(each) => <Avatar name={each.name} id={each.id} kind={each.kind} size="small" />}
      inviting={inviting}
      verb="Send"
      onSend={say}
      onKey={onKey}
      above={
        <>
          {reply}
          {chosen.length > 0 && <ChosenFiles attachments={attachments} />}
        </>
      }
      before={
        <>
          <AttachButton onFiles={attachments.add} />
          <DropArea onFiles={attachments.add} />
        </>
      }
      more={attachments.busy || chosen.length > MOST_FILES ? null : attachments.ready.length > 0}
      onFiles={attachments.add}
    />
  );
}
