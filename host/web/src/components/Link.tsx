import type { ComponentChildren } from "preact";
import { go, href, type Change } from "../state/store";

interface Props {
    to: Change;
    children: ComponentChildren;
    class?: string;
    title?: string;
    tabIndex?: number;
    /** It leads to what is shown now. */
    current?: boolean;
}

/** A link to another state of the page: a plain click stays in the page, with a key held the browser opens it as always. */
export function Link(props: Props) {
    return (
        <a
            href={href(props.to)}
            class={props.class}
            title={props.title}
            tabIndex={props.tabIndex}
            aria-current={props.current ? "page" : undefined}
            onClick={(event) => {
                if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
                event.preventDefault();
                go(props.to);
            }}
        >
            {props.children}
        </a>
    );
}
