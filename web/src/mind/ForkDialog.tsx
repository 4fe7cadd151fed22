import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { handleFrom } from "../agents/handles";
import { ApiError, inWords, post } from "../denizen/api";
import { useAgentsChanged } from "../denizen/hooks";
import { useRequestKey } from "../denizen/requestKey";
import { whole } from "../ui/amounts";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { TextField } from "../ui/Field";
import { useToast } from "../ui/Toast";
import { useMind } from "./watch";

/** A new agent with the past of this one up to a cycle; whoever makes it is taken there. */
export function ForkDialog({ at, onClose }: { at: number; onClose: () => void }): ReactNode {
  const { agent } = useMind();
  const [, go] = useLocation();
  const say = useToast();
  const changed = useAgentsChanged();
  const [name, setName] = useState(`${agent.name} at ${at}`);
  const [handle, setHandle] = useState<string | null>(null);
  const key = useRequestKey();
  const chosen = handle ?? handleFrom(name);
  const forking = useMutation({
    mutationFn: () => {
      const body = { handle: chosen, name: name.trim(), at };
      return post("/api/agents/{agent_id}/fork", { path: { agent_id: agent.id }, body, key: key.for(body) });
    },
    onSuccess: async (made) => {
      await changed();
      say(`${made.name} created with the history of ${agent.name} up to cycle ${whole(at)}.`);
      go(`/agents/${made.id}/life`);
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    forking.mutate();
  };
  const wrong = wrongs(forking.error);
  return (
    <Dialog title={`Fork at cycle ${whole(at)}`} onClose={onClose}>
      <form onSubmit={submit}>
        <p>Creates a new agent with the definition of {agent.name} and its history up to this cycle. It is not in any space yet; {agent.name} stays unchanged.</p>
        <TextField label="Name" value={name} required autoFocus error={wrong.name} onChange={(event) => setName(event.target.value)} />
        <TextField label="Handle" value={chosen} required error={wrong.handle} onChange={(event) => setHandle(event.target.value)} />
        {wrong.rest && <p role="alert">{wrong.rest}</p>}
        <DialogFoot onCancel={onClose}>
          <Button type="submit" variant="primary" busy={forking.isPending}>
            Fork
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}

function wrongs(error: unknown): { name?: string; handle?: string; rest?: string } {
  if (error === null) return {};
  if (!(error instanceof ApiError)) return { rest: inWords(error) };
  if (error.code === "handle_taken") return { handle: error.detail };
  const found = Object.fromEntries(error.errors.map((each) => [each.field, each.message]));
  return found.name || found.handle ? found : { rest: error.detail };
}
