import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { classes } from "./classes";
import css from "./ui.module.css";

type Variant = "primary" | "plain" | "quiet" | "danger";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: Variant;
  small?: boolean;
  /** Something is under way: it cannot be pressed again, and says so. */
  busy?: boolean;
  icon?: ReactNode;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({ variant = "plain", small, busy, icon, children, className, disabled, type = "button", ...rest }: ButtonProps): ReactNode {
  return (
    <button
      {...rest}
      type={type}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      className={classes(css.button, css[variant], small && css.small, className)}
    >
      {busy ? <span className={css.spinner} aria-hidden /> : icon}
      {children}
    </button>
  );
}

/** The look of a button, for links. */
export function buttonClass(variant: Variant = "plain", small = false): string {
  return classes(css.button, css[variant], small && css.small);
}

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** What it does, for those who do not see the icon; shown on hover. */
  label: string;
  icon: ReactNode;
  ref?: Ref<HTMLButtonElement>;
}

export function IconButton({ label, icon, className, type = "button", ...rest }: IconButtonProps): ReactNode {
  return (
    <button {...rest} type={type} aria-label={label} title={label} className={classes(css.iconButton, className)}>
      {icon}
    </button>
  );
}
