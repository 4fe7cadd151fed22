/** How a screen looks before there is something, when there is nothing, and when something went wrong. */
import { RotateCw } from "lucide-react";
import type { ReactNode } from "react";
import { ApiError, inWords } from "../denizen/api";
import { Button } from "./Button";
import css from "./ui.module.css";

export function Empty({ title, icon, children }: { title: string; icon?: ReactNode; children?: ReactNode }): ReactNode {
  return (
    <div className={css.empty}>
      {icon}
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function ErrorState({ error, onRetry }: { error: unknown; onRetry?: () => void }): ReactNode {
  return (
    <div className={css.errorState} role="alert">
      <strong>{error instanceof ApiError ? error.title : "Something went wrong"}</strong>
      <p>{inWords(error)}</p>
      {onRetry && (
        <Button small icon={<RotateCw size={15} />} onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Lines where text will be. */
export function Skeleton({ lines = 3, label = "Loading" }: { lines?: number; label?: string }): ReactNode {
  return (
    <div className={css.skeleton} role="status" aria-label={label}>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} className={css.bone} />
      ))}
    </div>
  );
}

/** Skeleton, error or what there is, of a query. */
export function Loaded<T>(props: {
  query: { data: T | undefined; error: unknown; isPending: boolean; refetch: () => unknown };
  lines?: number;
  children: (data: T) => ReactNode;
}): ReactNode {
  const { data, error, refetch } = props.query;
  if (data !== undefined) return props.children(data);
  if (error) return <ErrorState error={error} onRetry={() => void refetch()} />;
  return <Skeleton lines={props.lines ?? 6} />;
}
