import { X } from "lucide-react";
import { createContext, type ReactNode, useCallback, useContext, useState } from "react";
import { IconButton } from "./Button";
import css from "./ui.module.css";

interface Shown {
  id: number;
  text: string;
}

const ToastContext = createContext<(text: string) => void>(() => undefined);
const SECONDS = 6;

/** A function that says something at the edge of the screen, for a few seconds. */
export function useToast(): (text: string) => void {
  return useContext(ToastContext);
}

export function Toasts({ children }: { children: ReactNode }): ReactNode {
  const [shown, setShown] = useState<Shown[]>([]);
  const drop = useCallback((id: number) => setShown((all) => all.filter((each) => each.id !== id)), []);
  const say = useCallback(
    (text: string) => {
      const id = Math.random();
      setShown((all) => [...all.slice(-2), { id, text }]);
      setTimeout(() => drop(id), SECONDS * 1000);
    },
    [drop],
  );
  return (
    <ToastContext value={say}>
      {children}
      <div className={css.toasts} role="status">
        {shown.map((each) => (
          <div key={each.id} className={css.toast}>
            {each.text}
            <IconButton label="Dismiss" icon={<X size={16} />} onClick={() => drop(each.id)} />
          </div>
        ))}
      </div>
    </ToastContext>
  );
}
