/** A filter in the language of docs/src/filter.md, with completion from what the capture holds. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { json, of } from "../api/client";
import type { Capture, Completion } from "../api/types";
import { capture, param, setParam } from "../state/store";

export interface FilterProps {
    /** What it is over. */
    table: "connections" | "transactions";
    /** An example, shown while it is empty. */
    example: string;
}

/** Name of the state's choice that holds the filter of a table. */
export const filterParam = (table: FilterProps["table"]) => (table === "connections" ? "filter" : "requests");

/** Place of the caret in bytes of UTF-8, as the server counts. */
export function byteAt(text: string, caret: number): number {
    return new TextEncoder().encode(text.slice(0, caret)).length;
}

/** Put `insert` in place of the bytes `from` to `to`; the new text and caret. */
export function replaceBytes(text: string, from: number, to: number, insert: string): { text: string; caret: number } {
    const bytes = new TextEncoder().encode(text);
    const decoder = new TextDecoder();
    const head = decoder.decode(bytes.slice(0, from)) + insert;
    return { text: head + decoder.decode(bytes.slice(to)), caret: head.length };
}

export function FilterBox(props: FilterProps) {
    const name = filterParam(props.table);
    const applied = param(name);
    const [text, setText] = useState(applied);
    const [completion, setCompletion] = useState<Completion | null>(null);
    const [chosen, setChosen] = useState(-1);
    const [shown, setShown] = useState(false);
    const input = useRef<HTMLInputElement>(null);
    const asked = useRef<AbortController | null>(null);
    const list = useId();
    useEffect(() => setText(applied), [applied]);
    useEffect(() => () => asked.current?.abort(), []);

    const complete = (value: string, caret: number) => {
        asked.current?.abort();
        const abort = (asked.current = new AbortController());
        const parameters = { table: props.table, filter: value, cursor: byteAt(value, caret) };
        json<Completion>(of(capture.value as Capture, "/complete"), parameters, abort.signal).then(
            (found) => {
                if (abort.signal.aborted) return;
                setCompletion(found);
                setChosen(-1);
            },
            () => !abort.signal.aborted && setCompletion(null), // only a help: the filter itself says what is wrong
        );
    };
    const items = shown ? (completion?.items ?? []) : [];
    const take = (index: number) => {
        const item = completion?.items[index];
        if (!item || !completion || !input.current) return;
        const next = replaceBytes(text, completion.from, completion.to, item.text);
        setText(next.text);
        input.current.value = next.text;
        input.current.setSelectionRange(next.caret, next.caret);
        input.current.focus();
        complete(next.text, next.caret);
    };
    const apply = (value: string) => {
        setShown(false);
        setParam(name, value.trim());
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            if (!shown) {
                setShown(true);
                complete(text, input.current?.selectionStart ?? text.length);
                return;
            }
            const step = event.key === "ArrowDown" ? 1 : -1;
            if (items.length > 0)
                setChosen((before) => (before + step + items.length + (before < 0 && step < 0 ? 1 : 0)) % items.length);
        } else if (event.key === "Tab" && shown && chosen >= 0) {
            event.preventDefault();
            take(chosen);
        } else if (event.key === "Enter") {
            event.preventDefault();
            if (shown && chosen >= 0) take(chosen);
            else apply(text);
        } else if (event.key === "Escape") {
            if (shown) {
                event.stopPropagation();
                setShown(false);
            } else input.current?.blur();
        }
    };
    return (
        <div class="filter">
            <label class="unseen" for={`${list}-input`}>
                Filter over {props.table}
            </label>
            <input
                id={`${list}-input`}
                ref={input}
                data-filter
                type="text"
                spellcheck={false}
                autocomplete="off"
                role="combobox"
                aria-expanded={items.length > 0}
                aria-controls={list}
                aria-autocomplete="list"
                {...(chosen >= 0 && items.length > 0 ? { "aria-activedescendant": `${list}-${chosen}` } : {})}
                placeholder={`Filter ${props.table}, e.g. ${props.example}`}
                value={text}
                onInput={(event) => {
                    setText(event.currentTarget.value);
                    setShown(true);
                    complete(
                        event.currentTarget.value,
                        event.currentTarget.selectionStart ?? event.currentTarget.value.length,
                    );
                }}
                onKeyDown={onKeyDown}
                onBlur={() => setShown(false)}
            />
            <button type="button" disabled={text.trim() === applied} onClick={() => apply(text)}>
                Filter
            </button>
            <button type="button" disabled={applied === "" && text === ""} onClick={() => (setText(""), apply(""))}>
                Clear
            </button>
            <ul id={list} role="listbox" aria-label="Completions" hidden={items.length === 0}>
                {items.map((item, index) => (
                    <li
                        key={`${item.kind} ${item.text}`}
                        id={`${list}-${index}`}
                        role="option"
                        aria-selected={index === chosen}
                        onPointerDown={(event) => {
                            event.preventDefault(); // the input keeps the focus
                            take(index);
                        }}
                    >
                        <code>{item.text}</code> <small>{item.note ?? item.kind}</small>
                    </li>
                ))}
            </ul>
        </div>
    );
}
