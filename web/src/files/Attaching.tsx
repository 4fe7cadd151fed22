import { Paperclip, X } from "lucide-react";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { inWords } from "../denizen/api";
import { Button, IconButton } from "../ui/Button";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { TextArea } from "../ui/Field";
import { useToast } from "../ui/Toast";
import css from "./files.module.css";
import { isPicture } from "./links";
import { type Attachments, type Chosen, MOST_FILES } from "./useAttachments";

/** Files that are dropped anywhere on the page are for the message that is being written. While they are dragged, it says so. */
export function DropArea({ onFiles }: { onFiles: (files: File[]) => void }): ReactNode {
  const [dragged, setDragged] = useState(false);
  const say = useToast();
  useEffect(() => {
    const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    const over = (event: DragEvent): void => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      event.dataTransfer!.dropEffect = "copy";
      setDragged(true);
    };
    const leave = (event: DragEvent): void => {
      // Between two elements of the page there is always the next one.
      if (event.relatedTarget === null) setDragged(false);
    };
    const drop = (event: DragEvent): void => {
      setDragged(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      const { files, folders } = filesIn(event.dataTransfer!);
      if (folders) say("Folders cannot be attached. Choose the files in them.");
      if (files.length > 0) onFiles(files);
    };
    window.addEventListener("dragover", over);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", drop);
    };
  }, [onFiles, say]);
  return (
    dragged && (
      <div className={css.dropArea}>
        <p>
          <Paperclip size={18} aria-hidden />
          Drop files to attach them
        </p>
      </div>
    )
  );
}

function filesIn(carried: DataTransfer): { files: File[]; folders: boolean } {
  const items = [...carried.items].filter((each) => each.kind === "file");
  // A folder is among the files of a drop, as one that cannot be read.
  const kept = items.filter((each) => !each.webkitGetAsEntry()?.isDirectory);
  return { files: kept.map((each) => each.getAsFile()).filter((each) => each !== null), folders: kept.length < items.length };
}

/** Chooses files for the message that is being written. */
export function AttachButton({ onFiles }: { onFiles: (files: File[]) => void }): ReactNode {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Choose files"
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      <IconButton label="Attach files" icon={<Paperclip size={18} />} onClick={() => input.current!.click()} />
    </>
  );
}

/** The files of the message that is being written. */
export function ChosenFiles({ attachments }: { attachments: Attachments }): ReactNode {
  const { chosen, remove, retry } = attachments;
  const [described, setDescribed] = useState<Chosen | null>(null);
  return (
    <>
      <ul className={css.chosen} aria-label="Files to send">
        {chosen.map((each) => (
          <li key={each.key}>
            <span className={css.name}>{each.name}</span>
            {each.error && (
              <span className={css.fault} role="alert">
                {each.error}
              </span>
            )}
            {each.error && each.mayRetry && (
              <button type="button" className={css.again} onClick={() => retry(each)}>
                Try again
              </button>
            )}
            {!each.done && !each.error && <progress className={css.bar} value={each.share} aria-label={`Uploading ${each.name}`} />}
            {each.done && isPicture(each.done) && (
              <button type="button" className={css.again} title={each.done.alt ?? undefined} onClick={() => setDescribed(each)}>
                {each.done.alt ? "Edit description" : "Describe"}
                <span className="visually-hidden"> {each.name}</span>
              </button>
            )}
            <IconButton label={`Remove ${each.name}`} icon={<X size={15} />} onClick={() => remove(each.key)} />
          </li>
        ))}
      </ul>
      {described && <Describe chosen={described} describe={attachments.describe} onClose={() => setDescribed(null)} />}
      {chosen.length > MOST_FILES && (
        <p className={css.fault} role="alert">
          A message can have {MOST_FILES} files. Remove some.
        </p>
      )}
    </>
  );
}

/** What a picture shows, for people and models that cannot see it. */
function Describe({ chosen, describe, onClose }: { chosen: Chosen; describe: Attachments["describe"]; onClose: () => void }): ReactNode {
  const [text, setText] = useState(chosen.done?.alt ?? "");
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    // The form stands in the box of the message, which has its own.
    event.stopPropagation();
    setBusy(true);
    describe(chosen, text.trim() || null)
      .then(onClose)
      .catch((error: unknown) => {
        setFault(inWords(error));
        setBusy(false);
      });
  };
  return (
    <Dialog title={`Describe ${chosen.name}`} onClose={onClose}>
      <form className={css.describe} onSubmit={submit}>
        <TextArea
          label="Description"
          autoFocus
          rows={3}
          maxLength={1000}
          value={text}
          hint="What the picture shows. Screen readers read it, and models that do not see pictures get it."
          error={fault ?? undefined}
          onChange={(event) => setText(event.target.value)}
        />
        <DialogFoot onCancel={onClose}>
          <Button variant="primary" type="submit" busy={busy}>
            Save
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  );
}
