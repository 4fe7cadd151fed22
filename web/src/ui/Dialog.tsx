import { X } from "lucide-react";
import { type ReactNode, useEffect, useId, useRef } from "react";
import { Button, IconButton } from "./Button";
import { classes } from "./classes";
import css from "./ui.module.css";

interface DialogProps {
  title: ReactNode;
  /** Called when the person wants it gone: Escape, the cross, a press beside it. */
  onClose: () => void;
  children: ReactNode;
  /** Buttons at its end. */
  footer?: ReactNode;
  wide?: boolean;
  /** It has the whole screen. */
  full?: boolean;
  /** A press beside it does nothing: what it shows is not shown again. */
  firm?: boolean;
}

const FIELD = "form :is(input:not([readonly], [type=hidden]), textarea:not([readonly]), select)";

/** Where one begins: the field that wants the focus, the first of a form, or the first thing to press after the cross. */
function beginning(dialog: HTMLElement): HTMLElement | null {
  const [, body] = dialog.children;
  return dialog.querySelector("[data-autofocus=true]") ?? body!.querySelector(FIELD) ?? body!.querySelector("button, a[href]");
}

function ancestors(element: Element | null): HTMLElement[] {
  const parent = element?.parentElement;
  return parent ? [parent, ...ancestors(parent)] : [];
}

/** Also on what cannot have the focus otherwise: whoever goes on from there is where they were. */
function focusOn(element: HTMLElement | undefined): void {
  if (!element || element === document.body) return;
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

/** A dialog over everything, as long as it is rendered; the focus stays in it and goes back to where it was. */
export function Dialog({ title, onClose, children, footer, wide, full, firm }: DialogProps): ReactNode {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  const isFilledIn = useRef(false);
  useEffect(() => {
    const dialog = ref.current!;
    const before = document.activeElement;
    const around = ancestors(before);
    if (!dialog.open) dialog.showModal();
    // The browser would choose the cross. What React focuses by itself it does before the dialog is open, in vain.
    beginning(dialog)?.focus();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement) before.focus();
      // What opened it was deleted in it.
      if (before?.isConnected === false) focusOn(around.find((each) => each.isConnected));
    };
  }, []);
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      className={classes(css.dialog, wide && css.wide, full && css.full)}
      onCancel={(event) => {
        // Of a dialog inside this one, React tells this one too.
        if (event.target !== ref.current) return;
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        // Nor does one where something was filled in: that would be lost.
        if (event.target === ref.current && !firm && !isFilledIn.current) onClose();
      }}
      onInput={(event) => {
        isFilledIn.current ||= event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
      }}
    >
      <div className={css.dialogHead}>
        <h2 id={id}>{title}</h2>
        <IconButton label="Close" icon={<X size={18} />} onClick={onClose} />
      </div>
      <div className={css.dialogBody}>
        {children}
        {footer && <div className={css.dialogFoot}>{footer}</div>}
      </div>
    </dialog>
  );
}

/** Buttons at the end of a dialog; with `onCancel`, one to cancel comes first. */
export function DialogFoot({ children, onCancel }: { children: ReactNode; onCancel?: () => void }): ReactNode {
  return (
    <div className={css.dialogFoot}>
      {onCancel && (
        <Button variant="quiet" onClick={onCancel}>
          Cancel
        </Button>
      )}
      {children}
    </div>
  );
}
