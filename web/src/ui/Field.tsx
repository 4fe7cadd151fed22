import { ChevronDown } from "lucide-react";
import { type InputHTMLAttributes, type ReactNode, type Ref, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from "react";
import { classes } from "./classes";
import css from "./ui.module.css";

interface Around {
  label: ReactNode;
  hint?: ReactNode;
  error?: ReactNode;
}

/** What an input inside a `Field` has to be given, so that its label, hint and error belong to it. */
export interface FieldProps {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

/** A label, whatever is filled in, a hint and what is wrong with it. */
export function Field({ label, hint, error, children }: Around & { children: (props: FieldProps) => ReactNode }): ReactNode {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className={css.field}>
      <label htmlFor={id} className={css.label}>
        {label}
      </label>
      {children({ id, "aria-describedby": described || undefined, "aria-invalid": error ? true : undefined })}
      {hint && (
        <span id={`${id}-hint`} className={css.hint}>
          {hint}
        </span>
      )}
      {error && (
        <span id={`${id}-error`} className={css.fieldError} role="alert">
          {error}
        </span>
      )}
    </div>
  );
}

export function TextField({
  label,
  hint,
  error,
  className,
  ...rest
}: Around & InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }): ReactNode {
  return (
    <Field label={label} hint={hint} error={error}>
      {(props) => <input {...rest} {...props} data-autofocus={rest.autoFocus} className={classes(css.input, className)} />}
    </Field>
  );
}

export function TextArea({
  label,
  hint,
  error,
  className,
  ...rest
}: Around & TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }): ReactNode {
  return (
    <Field label={label} hint={hint} error={error}>
      {(props) => <textarea rows={4} {...rest} {...props} data-autofocus={rest.autoFocus} className={classes(css.input, className)} />}
    </Field>
  );
}

export function Select({ label, hint, error, children, className, ...rest }: Around & SelectHTMLAttributes<HTMLSelectElement>): ReactNode {
  return (
    <Field label={label} hint={hint} error={error}>
      {(props) => (
        <span className={css.selectWrap}>
          <select {...rest} {...props} className={classes(css.input, className)}>
            {children}
          </select>
          <ChevronDown size={16} aria-hidden />
        </span>
      )}
    </Field>
  );
}

export function Checkbox({ label, hint, ...rest }: { label: ReactNode; hint?: ReactNode } & InputHTMLAttributes<HTMLInputElement>): ReactNode {
  const id = useId();
  return (
    <div className={css.check}>
      <input {...rest} type="checkbox" id={id} aria-describedby={hint ? `${id}-hint` : undefined} />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint && (
          <div id={`${id}-hint`} className={css.hint}>
            {hint}
          </div>
        )}
      </div>
    </div>
  );
}

/** The look of an input, for those that stand without a visible label (they need an aria-label). */
export const inputClass: string = css.input ?? "";
/** The look of a label, for what is more than one input. */
export const labelClass: string = css.label ?? "";
