import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { Icon } from "../icon.js";

export interface MenuItem {
  label: string;
  note?: string;
  isChosen?: boolean;
  isDisabled?: boolean;
  onSelect: () => void;
}

/** A button that opens a list of actions or choices. Arrow keys move, Escape closes. */
export function Menu(props: {
  label: ComponentChildren;
  /** Accessible name, where the label alone does not say it. */
  name?: string;
  items: MenuItem[];
  class?: string;
  /** The items are choices of which one holds. */
  isChoice?: boolean;
  disabled?: boolean;
}) {
  const { label, name, items, class: extra, isChoice = false, disabled = false } = props;
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLSpanElement>(null);
  const id = useId();
  useEffect(() => {
    if (!isOpen) return undefined;
    const chosen = root.current?.querySelector<HTMLElement>("[role^=menuitem][aria-checked=true]");
    (chosen ?? root.current?.querySelector<HTMLElement>("[role^=menuitem]"))?.focus();
    const onPointer = (event: Event) => {
      if (!(event.target instanceof Node) || root.current?.contains(event.target) !== true) setOpen(false);
    };
    document.addEventListener("pointerdown", onPointer);
    return () => document.removeEventListener("pointerdown", onPointer);
  }, [isOpen]);
  const close = () => {
    setOpen(false);
    root.current?.querySelector("button")?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!isOpen) return;
    const entries = [...(root.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
    const at = entries.findIndex((entry) => entry === document.activeElement);
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown") entries[(at + 1) % entries.length]?.focus();
    else if (event.key === "ArrowUp") entries[(at - 1 + entries.length) % entries.length]?.focus();
    else if (event.key === "Home") entries[0]?.focus();
    else if (event.key === "End") entries.at(-1)?.focus();
    else if (event.key === "Tab") {
      setOpen(false);
      return;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <span class="menu" ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        class={`button ${extra ?? ""}`}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        aria-label={name}
        disabled={disabled}
        onClick={() => setOpen(!isOpen)}
      >
        {label}
        <Icon name="down" small />
      </button>
      {isOpen && (
        <span class="menu-list" role="menu" id={id}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              class="menu-item"
              role={isChoice ? "menuitemradio" : "menuitem"}
              aria-checked={isChoice ? item.isChosen === true : undefined}
              disabled={item.isDisabled}
              onClick={() => {
                close();
                item.onSelect();
              }}
            >
              <span class="menu-mark">{item.isChosen === true && <Icon name="applied" small />}</span>
              <span>{item.label}</span>
              {item.note !== undefined && <span class="secondary menu-note">{item.note}</span>}
            </button>
          ))}
        </span>
      )}
    </span>
  );
}
