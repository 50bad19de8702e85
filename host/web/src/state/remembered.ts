/**
 * Choices that this browser keeps for the next visit. It may refuse to (cookies are blocked, there is no room): then a
 * choice lasts as long as the page does, which works as well.
 */

export function remembered(key: string): string | null {
    try {
        return localStorage.getItem(key);
    } catch {
        return null;
    }
}

export function remember(key: string, value: string): void {
    try {
        localStorage.setItem(key, value);
    } catch {
        return;
    }
}
