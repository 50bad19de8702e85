import { afterEach, expect, test, vi } from "vitest";
import { closeCapture, columns, json, upload } from "./client";

afterEach(() => void vi.unstubAllGlobals());

const answering = (body: BodyInit, status = 200) =>
    vi.stubGlobal("fetch", () => Promise.resolve(new Response(body, { status })));

const BAD_GATEWAY = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";

test.each([
    ["a page to sign in", () => json("/captures"), "<!doctype html><p>Sign in", 200, "is not valid JSON"],
    ["a page in place of columns", () => columns("/timeline"), "<!doctype html><p>Sign in", 200, "(Expected to read"],
    ["a proxy whose server is gone", () => json("/captures"), BAD_GATEWAY, 502, "(502)."],
    ["a proxy that says so in words", () => json("/captures"), "no upstream\n", 503, "(503: no upstream)."],
    ["a proxy, for what is closed", () => closeCapture("1"), BAD_GATEWAY, 502, "(502)."],
])("what answers in Weir's place is told from it: %s", async (_, asked, body, status, why) => {
    answering(body, status);
    const said = asked();
    await expect(said).rejects.toThrow("The answer is none of Weir's: is there a proxy between");
    await expect(said).rejects.toThrow(why);
});

test("what Weir refuses is said in its words", async () => {
    answering('{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "by: no"}}', 400);
    await expect(json("/marks")).rejects.toMatchObject({ code: 400, status: "INVALID_ARGUMENT", message: "by: no" });
});

test("an answer that breaks off on its way is that of a server that is gone", async () => {
    answering(new ReadableStream({ pull: (body) => body.error(new TypeError("network error")) }));
    await expect(json("/captures")).rejects.toThrow("The server does not answer");
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
    await expect(closeCapture("1")).rejects.toThrow("The server does not answer");
});

test("what was cancelled is no failure of the server's", async () => {
    const abort = new AbortController();
    vi.stubGlobal("fetch", () => Promise.reject(new DOMException("cancelled", "AbortError")));
    abort.abort();
    await expect(json("/captures", {}, abort.signal)).rejects.toThrow("cancelled");
});

test("a file was sent to what is not Weir: it ends, and says so", async () => {
    vi.stubGlobal(
        "XMLHttpRequest",
        class {
            upload = {};
            status = 201;
            responseText = BAD_GATEWAY;
            onload = () => undefined;
            open(): void {}
            send(): void {
                setTimeout(() => this.onload());
            }
        },
    );
    await expect(upload(new File([], "a.pcap"), () => undefined).done).rejects.toThrow("The answer is none of Weir's");
});
