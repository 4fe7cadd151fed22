import { Component, type ReactNode } from "react";
import { ErrorState } from "../ui/States";
import { Page } from "./Page";
import css from "./shell.module.css";

/** What browsers say of a part of the page that could not be loaded: `import()` has no error of its own. */
const NOT_LOADED = /dynamically imported module|importing a module script|preload/i;

/**
 * What breaks inside is told, and does not take the rest with it. Another `of` begins anew. With a `title`, the error is
 * a screen of its own.
 */
export class Boundary extends Component<{ children: ReactNode; of?: string; title?: string }, { error: unknown; of?: string }> {
  override state: { error: unknown; of?: string } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  static getDerivedStateFromProps(props: { of?: string }, state: { of?: string }): { error?: unknown; of?: string } | null {
    return props.of === state.of ? null : { error: null, of: props.of };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    const isNotLoaded = error instanceof Error && NOT_LOADED.test(error.message);
    const told = isNotLoaded ? new Error("A part of this page could not be loaded: there is no connection, or the server has a new version.") : error;
    const shown = <ErrorState error={told} onRetry={() => location.reload()} />;
    return this.props.title ? <Page title={this.props.title}>{shown}</Page> : <div className={css.broken}>{shown}</div>;
  }
}
