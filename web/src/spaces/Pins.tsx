import { useQuery } from "@tanstack/react-query";
import { Pin, PinOff } from "lucide-react";
import type { ReactNode } from "react";
import { get, inWords, type Message, put, remove } from "../denizen/api";
import { useStore } from "../denizen/live";
import { IconButton } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { ErrorState, Skeleton } from "../ui/States";
import { useToast } from "../ui/Toast";
import { useAround } from "./context";
import css from "./reactions.module.css";

export function usePin(): (message: Message, pinned: boolean) => Promise<void> {
  const store = useStore();
  const toast = useToast();
  return async (message, pinned) => {
    const path = { space_id: message.space_id, message_id: message.id };
    const address = "/api/spaces/{space_id}/messages/{message_id}/pin";
    try {
      store.dispatch({ type: "message.edited", message: await (pinned ? put(address, { path }) : remove(address, { path })) });
      toast(pinned ? "Pinned. Find it in the space menu under Pinned messages." : "Unpinned.");
    } catch (error) {
      toast(inWords(error));
    }
  };
}

/** Says that a message is pinned. */
export function PinMark(): ReactNode {
  return (
    <p className={css.pinMark}>
      <Pin size={12} aria-hidden /> Pinned
    </p>
  );
}

/** The pinned messages of the space; each leads to its place. */
export function Pins({ onClose }: { onClose: () => void }): ReactNode {
  const around = useAround();
  const pin = usePin();
  const found = useQuery({ queryKey: ["pins", around.space], queryFn: () => get("/api/spaces/{space_id}/pins", { path: { space_id: around.space } }), gcTime: 0 });
  const messages = found.data?.messages;
  return (
    <Dialog title="Pinned messages" onClose={onClose}>
      {found.error ? <ErrorState error={found.error} onRetry={() => void found.refetch()} /> : null}
      {!messages && !found.error && <Skeleton lines={3} label="Loading pinned messages" />}
      {messages?.length === 0 && <p>No pinned messages yet. Choose Pin in the menu of a message.</p>}
      <ul className={css.pins}>
        {messages?.map((each) => (
          <li key={each.id}>
            <button
              type="button"
              className={css.pinned}
              onClick={() => {
                onClose();
                around.goTo(each.seq);
              }}
            >
              <strong>{each.author.name}</strong>
              <span className={css.pinnedText}>{each.plain}</span>
            </button>
            <IconButton label="Unpin" icon={<PinOff size={16} />} onClick={() => void pin(each, false).then(() => found.refetch())} />
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
