import { Component, type ReactNode } from "react";
import { ErrorState } from "../ui/States";
import css from "./shell.module.css";

/** What breaks inside is told, and does not take the rest with it. Another `of` begins anew. */
export class Boundary extends Component<{ children: ReactNode; of?: string }, { error: unknown; of?: string }> {
  override state: { error: unknown; of?: string } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  static getDerivedStateFromProps(props: { of?: string }, state: { of?: string }): { error?: unknown; of?: string } | null {
    return props.of === state.of ? null : { error: null, of: props.of };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <div className={css.broken}>
        <ErrorState error={this.state.error} onRetry={() => location.reload()} />
      </div>
    );
  }
}
