import type { ReactNode } from "react";
import { useMe } from "../denizen/hooks";
import { Page } from "../shell/Page";

export default function MePage(): ReactNode {
  const me = useMe();
  return (
    <Page title="You">
      <p>
        You are {me.name} (@{me.handle}), {me.role} of {me.organization.name}.
      </p>
    </Page>
  );
}
