/** A real server and a real browser. WEIR_BIN names the program; what it answers is compared with what it prints. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { expect } from "vitest";
import { ROOM } from "../src/chart/axes";

export const ROOT = resolve(import.meta.dirname, "../../..");
export const WEIR = process.env.WEIR_BIN ?? resolve(ROOT, "bin/weir");
export const DEMO = resolve(ROOT, "docs/demo/demo.pcap");
const PAGE = resolve(ROOT, "bin/page");
const AXE = readFileSync(resolve(ROOT, "host/web/node_modules/axe-core/axe.min.js"), "utf8");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** What `weir analyze --format json` says, as far as the tests read it. */
export interface Answer {
    connections: {
        id: string;
        client: { address: string; port: number };
        server: { address: string; port: number };
        firstPacketTime: string;
        durationSeconds: number;
        setup: { outcome: string; explanation: string; endSeconds?: number };
        close: { kind: string };
        clientToServer: { packets: string; payloadBytes: string };
        serverToClient: { packets: string; payloadBytes: string };
    }[];
    transactions: {
        connectionId: string;
        kind: string;
        signature: string;
        endSeconds?: number;
        requestTime: string;
        losses: number;
    }[];
    findings: { kind: string; severity: string; title: string; evidence: string[]; connectionIds?: string[] }[];
    summary: {
        connections: string;
        transactions: string;
        packets: string;
        start: string;
        end: string;
        phases: unknown[];
        tiers: {
            back: { address: string; port: number };
            callsDecided: string;
            callsAmbiguous: string;
            slowest: {
                connectionId: string;
                start: string;
                seconds: number;
                calls: { connectionId: string; seconds: number }[];
            }[];
        }[];
        retransmissionRate: { total: number; retransmittedPackets: string; dataPackets: string };
    };
}

export function analyze(file: string): Answer {
    const text = execFileSync(WEIR, ["analyze", file, "--format", "json"], { maxBuffer: 1 << 28, encoding: "utf8" });
    return JSON.parse(text) as Answer;
}

export interface Server {
    url: string;
    stop(): Promise<void>;
}

/** `weir view FILES`, on a port of the system's choice. */
export function serve(...files: string[]): Promise<Server> {
    return start(["view", ...files, "--listen", "127.0.0.1:0"]);
}

/** The same on a port that was another server's. */
export function serveAt(port: string, ...files: string[]): Promise<Server> {
    return start(["view", ...files, "--listen", `127.0.0.1:${port}`]);
}

/** A daemon that measures a capture as if it came from a port, with packets. */
export function serveLive(file: string, folder: string): Promise<Server> {
    const listen = ["--listen", "127.0.0.1:0", "--page", "127.0.0.1:0"];
    return start(["serve", "--port", `pcap:${file}`, "--digests", ...listen, "--data", folder]);
}

async function start(command: string[]): Promise<Server> {
    if (!existsSync(resolve(PAGE, "index.html"))) throw new Error(`no page in ${PAGE}: run make page`);
    const child: ChildProcess = spawn(WEIR, [...command, "--page-files", PAGE], { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    const url = await new Promise<string>((done, fail) => {
        const timer = setTimeout(() => fail(new Error(`weir ${command[0]} said no URL in 30 s:\n${said}`)), 30_000);
        const hear = (chunk: Buffer) => {
            said += chunk.toString();
            // A whole one: a chunk may end within it.
            const found = /http:\/\/[\w.:[\]]+(?=\s)/.exec(said);
            if (found) {
                clearTimeout(timer);
                done(found[0]);
            }
        };
        child.stdout?.on("data", hear);
        child.stderr?.on("data", hear);
        child.on("exit", (code) => fail(new Error(`weir ${command[0]} ended with ${code}:\n${said}`)));
    });
    return {
        url,
        stop: () =>
            new Promise((done) => {
                if (child.exitCode !== null || child.signalCode !== null) return done();
                child.removeAllListeners("exit");
                child.on("exit", () => done());
                child.kill();
            }),
    };
}

export function launch(): Promise<Browser> {
    return chromium.launch({
        executablePath: CHROMIUM,
        args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    });
}

/** Memory of the browser, all its processes, of what they share with no file, MB (Linux). It holds answers for the test, too. */
export function memory(): number {
    const all = readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .flatMap((pid) => {
            try {
                const status = readFileSync(`/proc/${pid}/status`, "utf8");
                const number = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
                const taken = /^Name:.*chrom/.test(status) ? number("RssAnon") + number("VmSwap") : 0;
                return [{ pid: Number(pid), parent: number("PPid"), taken }];
            } catch {
                return []; // It has ended.
            }
        });
    const sum = (of: number): number =>
        all.filter(({ parent }) => parent === of).reduce((kB, { pid, taken }) => kB + taken + sum(pid), 0);
    return sum(process.pid) / 1000;
}

/** A page of the browser that remembers every error it prints. */
export interface Tab {
    page: Page;
    errors: string[];
    /** Go to a state (the URL's parameters) and wait until it is drawn. */
    show(parameters: string): Promise<void>;
}

export async function tab(browser: Browser, server: Server, theme: "light" | "dark" = "light"): Promise<Tab> {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, colorScheme: theme });
    const errors: string[] = [];
    page.on("console", (message) => {
        if (message.type() === "error" || message.type() === "warning")
            errors.push(`${message.text()} (${page.url()})`);
    });
    page.on("pageerror", (error) => errors.push(`${error.message} (${page.url()})`));
    return {
        page,
        errors,
        async show(parameters) {
            await page.goto(`${server.url}/?v=1&${parameters}`);
            await settled(page);
        },
    };
}

/** Nothing is on its way for so many ms: what a key or a click asks for is asked a frame or two later. */
const QUIET = 150;

/** Everything that was asked for has come. */
export async function settled(page: Page): Promise<void> {
    await page.waitForSelector("main h1");
    await page.evaluate(
        (quiet) =>
            new Promise<void>((done) => {
                let since = performance.now();
                const look = () => {
                    const now = performance.now();
                    if (document.querySelector("[aria-busy=true], main > .waiting")) since = now;
                    if (now - since >= quiet) done();
                    else requestAnimationFrame(look);
                };
                look();
            }),
        QUIET,
    );
}

/** What axe finds wrong with the page, one line each; WCAG 2.2 AA. */
export async function axe(page: Page): Promise<string[]> {
    await page.evaluate(AXE);
    const found = await page.evaluate(async () => {
        const { axe } = globalThis as unknown as {
            axe: {
                run(
                    context: Document,
                    options: object,
                ): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
            };
        };
        return (await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }))
            .violations;
    });
    return found.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 160)}`));
}

export function parameter(page: Page, name: string): string | null {
    return new URL(page.url()).searchParams.get(name);
}

/** Text of the table's rows in sight, cell by cell. */
export async function gridRows(page: Page): Promise<string[][]> {
    return page.$$eval('[role="grid"] [id^="row-"]', (rows) =>
        rows.map((row) => [...row.querySelectorAll('[role="gridcell"]')].map((cell) => cell.textContent ?? "")),
    );
}

export async function gridHeads(page: Page): Promise<string[]> {
    return page.$$eval('[role="grid"] [role="columnheader"]', (heads) =>
        heads.map((head) => (head.textContent ?? "").replace(/ [▲▼]$/, "")),
    );
}

/** Drag across a chart, from and to as shares of its plot's width. */
export async function brush(page: Page, chart: string, from: number, to: number): Promise<void> {
    const box = await page.locator(`[data-chart="${chart}"] .plot`).boundingBox();
    if (!box) throw new Error(`no chart ${chart}`);
    const x = (share: number) => box.x + ROOM + (box.width - ROOM - 68) * share;
    await page.mouse.move(x(from), box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(x((from + to) / 2), box.y + box.height / 2);
    await page.mouse.move(x(to), box.y + box.height / 2);
    await page.mouse.up();
}

export function expectNoErrors(one: Tab): void {
    expect(one.errors).toEqual([]);
}
