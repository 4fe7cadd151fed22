import { useQueryClient } from "@tanstack/react-query";
import { LockOpen } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { inWords, post } from "../denizen/api";
import { Button } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { TextArea } from "../ui/Field";
import { useToast } from "../ui/Toast";
import { useAct } from "../ui/useAct";
import css from "./mind.module.css";

/** What stands in the place of a cycle that one may not read; an owner can open the spaces it comes from. */
export function PrivateCycle({ entries, spaces }: { entries: number; spaces: string[] }): ReactNode {
  const [opening, setOpening] = useState(false);
  return (
    <section className={css.privateCycle} aria-label="Private">
      <p>
        <strong>Private, {entries === 1 ? "1 entry" : `${entries} entries`}.</strong> This cycle comes from a private space that you are not in. Only its members
        can read it.
      </p>
      {spaces.length > 0 && (
        <Button small icon={<LockOpen size={15} />} onClick={() => setOpening(true)}>
          Open for an hour…
        </Button>
      )}
      {opening && <OpenDialog spaces={spaces} onClose={() => setOpening(false)} />}
    </section>
  );
}

function OpenDialog({ spaces, onClose }: { spaces: string[]; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const say = useToast();
  const [reason, setReason] = useState("");
  const { busy, error, run } = useAct();
  const open = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      for (const space_id of spaces) await post("/api/spaces/{space_id}/open", { path: { space_id }, body: { reason } });
      await client.invalidateQueries();
      say("You can read it for an hour. The members were told.");
      onClose();
    });
  };
  return (
    <Dialog title={spaces.length === 1 ? "Open a private space?" : `Open ${spaces.length} private spaces?`} onClose={onClose}>
      <form className={css.openForm} onSubmit={open}>
        <p>For one hour you can read the messages there, and what agents know from it. A notice in the space tells its members who you are and why; it stays, and so does the entry in the audit log.</p>
        <TextArea
          label="Reason"
          hint="The members will see it."
          required
          maxLength={500}
          rows={3}
          autoFocus
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          error={error ? inWords(error) : undefined}
        />
        <DialogFoot onCancel={onClose}>
          <Button type="submit" variant="danger" busy={busy} disabled={!reason.trim()}>
            Open for an hour
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
