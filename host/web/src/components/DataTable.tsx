/**
 * A table of a million rows: only the rows in sight are asked for and drawn. Sorting and filtering are the server's.
 * Its choices (columns, sort, row) are in the URL.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { columns as ask, json, of, type Columns } from "../api/client";
import type { Capture, ColumnInfo } from "../api/types";
import { startOf } from "../chart/ChartFrame";
import { count, date, several } from "../format";
import { asked, capture, param, revision, setParam, zoomed } from "../state/store";
import { openConnection, toConnection } from "../views/open";
import { cell, heading, headingTitle, isNumeric, longestText, widthOf } from "./columns";
import { filterParam } from "./FilterBox";
import { Link } from "./Link";
import { Loading, useLoad } from "./load";

export interface TableProps {
    table: "connections" | "transactions";
    /** Columns that are shown until the reader chooses. */
    usual: readonly string[];
    /** Further sets of columns, by name. */
    sets: Readonly<Record<string, readonly string[]>>;
    /** Which rows of the time range: those that begin in it, or that lie partly in it. */
    touch: "begin" | "overlap";
    /** Column with the connection's id: a row leads there. */
    id: string;
    /** Columns that `ways` needs. */
    needs: readonly string[];
    /** Where the chosen row leads beside its connection. */
    ways(id: string, value: Value): ComponentChildren;
}

/** Text of a column in the chosen row; null: not known. */
export type Value = (name: string) => string | null;

/** What of a list is here. */
interface Store {
    list: string;
    /** As of the page's `revision`. */
    news: number;
    total: number;
    pages: ReadonlyMap<number, Columns>;
}

interface Found {
    page: Columns;
    /** Place in the page. */
    row: number;
}

const ROW = 26;
const PAGE = 200;
const KEPT_PAGES = 30;
/** However tall the window is. */
const MOST_DRAWN = 300;
/** Browsers draw no element much taller than this: beyond, scrolling is in proportion. */
const TALLEST = 12_000_000;

/** Index of the first row in sight. */
export function firstRow(scrollTop: number, total: number, viewport: number): number {
    const tall = total * ROW;
    if (tall <= TALLEST) return Math.floor(scrollTop / ROW);
    const inSight = viewport / ROW;
    return Math.floor((scrollTop / (TALLEST - viewport)) * (total - inSight));
}

/** Where to scroll so that a row is the first in sight. */
export function scrollFor(row: number, total: number, viewport: number): number {
    const tall = total * ROW;
    if (tall <= TALLEST) return row * ROW;
    return (row / Math.max(1, total - viewport / ROW)) * (TALLEST - viewport);
}

/** Those that are wanted, or the usual ones if there is none of them; and the names that are no column's. */
export function columnsOf(
    wanted: readonly string[],
    usual: readonly string[],
    byName: ReadonlyMap<string, ColumnInfo>,
): [known: ColumnInfo[], unknown: string[]] {
    const known = (names: readonly string[]) => names.flatMap((name) => byName.get(name) ?? []);
    const found = known(wanted);
    return [found.length > 0 ? found : known(usual), wanted.filter((name) => !byName.has(name))];
}

export function DataTable(props: TableProps) {
    const shown = capture.value as Capture;
    const infos = useLoad(`columns ${shown.id} ${props.table}`, (signal) =>
        json<{ columns: ColumnInfo[] }>(of(shown, "/columns"), { table: props.table }, signal),
    );
    return (
        <Loading of={infos} what="Columns">
            {(data) => <Rows {...props} infos={data.columns} />}
        </Loading>
    );
}

function Rows(props: TableProps & { infos: readonly ColumnInfo[] }) {
    const shown = capture.value as Capture;
    const byName = useMemo(() => new Map(props.infos.map((info) => [info.name, info])), [props.infos]);
    const wanted = param("columns", props.usual.join(",")).split(",");
    const [visible, unknown] = columnsOf(wanted, props.usual, byName);
    const order = param("sort").replace(/^-/, "");
    const sort = byName.has(order) ? param("sort") : "";
    if (order !== "" && sort === "") unknown.push(order);
    const filter = param(filterParam(props.table));
    const { from, to } = asked.value;
    const limits = zoomed.value ? { from, to, touch: props.touch } : {};
    const names = [...new Set([...visible.map((info) => info.name), props.id, ...props.needs])].join(",");
    // News are of the same list: its rows stay in sight until the newer ones have come.
    const list = JSON.stringify([shown.id, filter, sort, names, limits]);

    const scroller = useRef<HTMLDivElement>(null);
    const [top, setTop] = useState(0);
    const [viewport, setViewport] = useState(500);
    const [store, setStore] = useState<Store>({ list: "", news: 0, total: 0, pages: new Map() });
    const current = store.list === list;
    const chosen = param("row") === "" ? -1 : Number(param("row"));

    const first = current ? Math.max(0, Math.min(firstRow(top, store.total, viewport), store.total - 1)) : 0;
    const inSight = Math.min(MOST_DRAWN, Math.ceil(viewport / ROW) + 1);
    const last = current ? Math.min(store.total, first + inSight) : inSight;
    const needed = pagesOf(first, Math.max(last, first + 1));
    const answer = useLoad(JSON.stringify([list, needed]), async (signal) => {
        const news = revision.peek();
        const here = current && store.news === news ? store.pages : new Map<number, Columns>();
        const came = await Promise.all(
            needed
                .filter((page) => !here.has(page))
                .map(async (page) => {
                    const query = { filter, sort, columns: names, offset: page * PAGE, limit: PAGE, ...limits };
                    return [page, await ask(of(shown, `/${props.table}`), query, signal)] as const;
                }),
        );
        const [, newest] = came.at(-1) ?? [];
        if (signal.aborted || newest === undefined) return;
        const pages = new Map([...here, ...came]);
        for (const old of pages.keys()) {
            if (pages.size <= KEPT_PAGES) break;
            if (!needed.includes(old)) pages.delete(old);
        }
        setStore({ list, news, total: Number(newest.metadata.get("total") ?? newest.rows), pages });
    });
    const failed = answer.error !== null && !current;
    const total = failed ? 0 : store.total;

    useEffect(() => {
        if (!scroller.current) return;
        const watch = new ResizeObserver(([entry]) => entry && setViewport(entry.contentRect.height));
        watch.observe(scroller.current);
        // Who follows a link to a row goes on from there by keyboard.
        if (chosen >= 0 && document.activeElement?.id === "main") scroller.current.focus();
        return () => watch.disconnect();
    }, []);
    // Another filter or order begins at its top; a link's row is scrolled to.
    useEffect(() => {
        if (!scroller.current || store.list === "") return;
        const at = chosen >= 0 && chosen < total ? scrollFor(Math.max(0, chosen - 3), total, viewport) : 0;
        scroller.current.scrollTop = at;
        setTop(at);
    }, [store.list]);

    const lookup = (index: number): Found | null => {
        const page = store.pages.get(Math.floor(index / PAGE));
        const row = index % PAGE;
        return page && row < page.rows ? { page, row } : null;
    };
    const letters = useMemo(
        () => visible.map(({ name }) => longestText(store.pages.values(), name)),
        [store.pages, names],
    );
    const found = chosen >= 0 && current ? lookup(chosen) : null;

    const choose = (index: number) => {
        const next = Math.min(Math.max(index, 0), total - 1);
        setParam("row", String(next), { replace: true });
        const box = scroller.current;
        if (!box) return;
        const fits = Math.floor(viewport / ROW) - 1;
        if (next < first + 1 && next < first) box.scrollTop = scrollFor(next, total, viewport);
        else if (next >= first + fits) box.scrollTop = scrollFor(next - fits + 1, total, viewport);
        else if (next === first) box.scrollTop = scrollFor(next, total, viewport);
    };
    const openAt = (index: number) => {
        const at = lookup(index);
        const id = at?.page.at(props.id, at.row);
        if (id !== null && id !== undefined) openConnection(String(id));
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const fits = Math.max(1, Math.floor(viewport / ROW) - 1);
        const keys: Record<string, () => void> = {
            ArrowDown: () => choose(chosen + 1),
            ArrowUp: () => choose(chosen < 0 ? 0 : chosen - 1),
            PageDown: () => choose(chosen + fits),
            PageUp: () => choose(chosen - fits),
            Home: () => choose(0),
            End: () => choose(total - 1),
            Enter: () => openAt(chosen),
        };
        const act = keys[event.key];
        if (!act || total === 0) return;
        event.preventDefault();
        act();
    };

    const start = startOf();
    const dated = date(start, shown.seconds ?? 0, 0) !== date(start, 0, 0);
    const widths = visible.map((info, column) => widthOf(info, dated, letters[column]));
    const template = widths.map((width) => `${width}px`).join(" ");
    const wide = widths.reduce((sum, width) => sum + width, 0);
    const rows = [];
    for (let index = first; index < last && !failed; index += 1) rows.push(index);
    return (
        <>
            <section class="panel table" aria-label={props.table}>
                <div class="tablehead">
                    <span role="status">
                        {failed ? "" : current ? several(total, props.table.slice(0, -1)) : "Loading…"}
                        {zoomed.value && " in the time range"}
                    </span>
                    <span class="space" />
                    <ColumnChoice {...props} visible={visible} />
                </div>
                {unknown.length > 0 && (
                    <p class="note" role="status">
                        This link names columns that there are not (any more), and is shown without them:{" "}
                        {[...new Set(unknown)].join(", ")}. Columns has all that there are.
                    </p>
                )}
                {answer.error !== null && (
                    <p class="error" role="alert">
                        {answer.error}
                    </p>
                )}
                <div
                    ref={scroller}
                    class="rows"
                    role="grid"
                    aria-busy={!current && answer.loading}
                    aria-label={`${props.table}, ${count(total)} rows`}
                    aria-rowcount={total + 1}
                    aria-colcount={visible.length}
                    tabIndex={0}
                    onScroll={(event) => setTop(event.currentTarget.scrollTop)}
                    onKeyDown={onKeyDown}
                    {...(found ? { "aria-activedescendant": `row-${chosen}` } : {})}
                >
                    <div role="rowgroup" class="headrow" style={{ width: `${wide}px` }}>
                        <div role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
                            {visible.map((info) => (
                                <Head key={info.name} info={info} sort={sort} />
                            ))}
                        </div>
                    </div>
                    <div
                        role="rowgroup"
                        style={{
                            height: `${Math.min(total * ROW, TALLEST)}px`,
                            width: `${wide}px`,
                            position: "relative",
                        }}
                    >
                        {rows.map((index) => {
                            const at = current ? lookup(index) : null;
                            return (
                                <div
                                    key={index}
                                    id={`row-${index}`}
                                    role="row"
                                    aria-rowindex={index + 2}
                                    aria-selected={index === chosen}
                                    class={index % 2 ? "odd" : undefined}
                                    style={{
                                        gridTemplateColumns: template,
                                        top: `${top - (total * ROW <= TALLEST ? top % ROW : 0) + (index - first) * ROW}px`,
                                    }}
                                    // A link in it has led elsewhere.
                                    onClick={(event) => !event.defaultPrevented && choose(index)}
                                    onDblClick={() => openAt(index)}
                                >
                                    {visible.map((info, column) => {
                                        const text = at ? cell(info, at.page, at.row, start) : "";
                                        return (
                                            <div
                                                key={info.name}
                                                role="gridcell"
                                                aria-colindex={column + 1}
                                                class={isNumeric(info) ? "number" : undefined}
                                                title={text}
                                            >
                                                {info.name === props.id && at ? (
                                                    <Link to={toConnection(text)} tabIndex={-1}>
                                                        {text}
                                                    </Link>
                                                ) : (
                                                    text
                                                )}
                                            </div>
                                        );
                                    })}
                                </div>
                            );
                        })}
                    </div>
                </div>
            </section>
            {/* Only the rows in sight are there at all. */}
            <p class="printed">
                Cut: of {several(total, props.table.slice(0, -1))}, those that were in sight are printed, as far as
                there was room. All are on the page, and in what weir analyze writes.
            </p>
            {found && <Detail {...props} {...found} />}
        </>
    );
}

/** What can be done with the row that was chosen. */
function Detail(props: TableProps & Found) {
    const { page, row, table, ways } = props;
    const value: Value = (name) => {
        const cell = page.at(name, row);
        return cell === null || cell === "" ? null : String(cell);
    };
    const id = value(props.id);
    if (id === null) return null;
    return (
        <aside class="panel detail" aria-label={`The chosen ${table.slice(0, -1)}`}>
            <strong>Connection {id}</strong>
            <span class="ways">
                <Link to={toConnection(id)}>Open it</Link>
                {ways(id, value)}
            </span>
        </aside>
    );
}

function pagesOf(first: number, end: number): number[] {
    const pages = [];
    for (let page = Math.floor(first / PAGE); page * PAGE < end; page += 1) pages.push(page);
    return pages;
}

function Head(props: { info: ColumnInfo; sort: string }) {
    const { info, sort } = props;
    const way = sort === info.name ? "ascending" : sort === `-${info.name}` ? "descending" : "none";
    // Amounts are looked at from the largest: the first click falls.
    const next =
        way === "none"
            ? isNumeric(info) && info.type !== "time"
                ? `-${info.name}`
                : info.name
            : way === "descending"
              ? info.name
              : `-${info.name}`;
    return (
        <div role="columnheader" aria-sort={way} class={isNumeric(info) ? "number" : undefined}>
            <button type="button" title={`${headingTitle(info)}: sort`} onClick={() => setParam("sort", next)}>
                {heading(info.name)}
                {way === "ascending" ? " ▲" : way === "descending" ? " ▼" : ""}
            </button>
        </div>
    );
}

function ColumnChoice(props: TableProps & { infos: readonly ColumnInfo[]; visible: readonly ColumnInfo[] }) {
    const [search, setSearch] = useState("");
    const names = props.visible.map((info) => info.name);
    const set = (next: readonly string[]) => {
        if (next.length > 0) setParam("columns", next.join(",") === props.usual.join(",") ? "" : next.join(","));
    };
    const toggle = (name: string) => set(names.includes(name) ? names.filter((one) => one !== name) : [...names, name]);
    return (
        <details class="choice">
            <summary>Columns</summary>
            <div>
                <div class="sets">
                    <button type="button" onClick={() => set(props.usual)}>
                        usual
                    </button>
                    {Object.entries(props.sets).map(([name, columns]) => (
                        <button key={name} type="button" onClick={() => set(columns)}>
                            {name}
                        </button>
                    ))}
                </div>
                <input
                    type="search"
                    aria-label="Find a column"
                    placeholder="Find a column"
                    value={search}
                    onInput={(event) => setSearch(event.currentTarget.value)}
                />
                <ul>
                    {props.infos
                        .filter((info) => info.name.includes(search.trim().replaceAll(" ", "_")))
                        .map((info) => (
                            <li key={info.name}>
                                <label title={info.doc}>
                                    <input
                                        type="checkbox"
                                        checked={names.includes(info.name)}
                                        onChange={() => toggle(info.name)}
                                    />{" "}
                                    {info.name.replaceAll("_", " ")}
                                </label>
                            </li>
                        ))}
                </ul>
            </div>
        </details>
    );
}
