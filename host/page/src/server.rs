//! HTTP: routes, what comes from elsewhere, uploads, changes, the page's files.

use std::collections::HashMap;
use std::future::Future;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{self, Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use weir_api::access::Access;
use weir_api::http::guarded;

use crate::captures::{Captures, MOST, UPLOAD};
use crate::dataset::Dataset;
use crate::error::Refused;
use crate::params::{Params, shown};
use crate::reply::Reply;
use crate::tables::Table;
use crate::{answers, complete, connection, exchange, marks, statistics, tables, timeline, timing, waits};

/// Answers that are made at once; more wait.
const AT_ONCE: usize = 4;
/// How often changes are looked for.
const LOOK: Duration = Duration::from_millis(250);
/// Silence before a comment keeps a stream of changes open.
const SILENCE: Duration = Duration::from_secs(15);
/// Longest name of an upload.
const NAME: usize = 200;
/// Nothing from outside; charts set styles of their own, pictures are made in the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self' blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How the page is served.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// The page's files, as `make page` builds them.
    pub files: PathBuf,
    /// Names by which browsers may call it, beside addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Who may open it.
    pub access: Access,
}

struct Server {
    captures: Arc<Captures>,
    site: Site,
    work: Semaphore,
}

/// Serve until `shutdown` resolves.
pub async fn serve(
    listener: TcpListener,
    captures: Arc<Captures>,
    site: Site,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let (close, closed) = tokio::sync::oneshot::channel::<()>();
    let stop = async move {
        shutdown.await;
        let _ = close.send(());
    };
    let access = site.access.clone();
    tokio::select! {
        () = weir_api::http::serve(listener, router(captures, site), &access) => {}
        // Streams of changes have no end of their own.
        () = stop => drop(closed),
    }
}

/// All routes.
pub fn router(captures: Arc<Captures>, site: Site) -> Router {
    let access = site.access.clone();
    let server = Arc::new(Server {
        captures,
        site,
        work: Semaphore::new(AT_ONCE),
    });
    let api = Router::new()
        .route("/captures", get(list).post(upload))
        .route("/captures/{id}", get(object))
        .route("/captures/{id}/close", post(close))
        .route("/captures/{id}/{view}", get(view))
        .route("/captures/{id}/connections/{connection}", get(one))
        .route("/captures/{id}/connections/{connection}/{view}", get(one_view))
        .route("/events", get(events))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method);
    let router = Router::new()
        .nest("/api/v1", api)
        .fallback(file)
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest));
    guarded(router, &access)
        .layer(middleware::from_fn_with_state(Arc::clone(&server), guard))
        .with_state(server)
}

/// Who asks, and what the browser is told about the answer.
async fn guard(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    // HTTP/2 names the host in place of its header (RFC 9113 8.3.1).
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let mut response = match check(&server.site, authority, request.headers(), request.method() == "POST") {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        let headers = response.headers_mut();
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let headers = response.headers_mut();
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// A name that somebody else lets lead here would make the page theirs (DNS rebinding): addresses cannot, names can.
fn check(site: &Site, authority: Option<&str>, headers: &HeaderMap, changes: bool) -> Result<(), Refused> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let host = text(HOST).or(authority).unwrap_or_default();
    let name = without_port(host);
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let is_known =
        name.eq_ignore_ascii_case("localhost") || site.hosts.iter().any(|own| own.eq_ignore_ascii_case(name));
    if !is_address && !is_known {
        return Err(Refused::denied(format_args!(
            "Host {} is no address and not localhost; --page-host lets a name in",
            shown(host)
        )));
    }
    // Browsers name where a POST comes from.
    match text(ORIGIN) {
        Some(origin) if changes && origin.split_once("://").is_none_or(|(_, from)| from != host) => Err(
            Refused::denied(format_args!("this request comes from {}", shown(origin))),
        ),
        _ => Ok(()),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address are inside brackets.
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

async fn no_route(uri: Uri) -> Refused {
    Refused::not_found(format_args!(
        "there is no route {}; docs/src/page-api.md lists them",
        shown(uri.path())
    ))
}

async fn no_method(uri: Uri) -> Refused {
    Refused::invalid(format_args!("{} does not take this method", shown(uri.path())))
}

/// Parameters of a request.
type Pairs = Query<Vec<(String, String)>>;

fn params(pairs: Result<Pairs, extract::rejection::QueryRejection>) -> Result<Params, Refused> {
    let Query(pairs) = pairs.map_err(|error| Refused::invalid(error.body_text()))?;
    Params::new(pairs)
}

/// Work that takes the processor, beside what waits for the network.
async fn work<T: Send + 'static>(
    server: &Server,
    job: impl FnOnce() -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let _permit = server.work.acquire().await.map_err(Refused::internal)?;
    let done = tokio::task::spawn_blocking(job).await;
    done.map_err(|_| Refused::internal("this answer broke down; please report it"))?
}

async fn list(
    State(server): State<Arc<Server>>,
    pairs: Result<Pairs, extract::rejection::QueryRejection>,
) -> Result<Reply, Refused> {
    params(pairs)?.end()?;
    let captures = Arc::clone(&server.captures);
    work(&server, move || {
        Ok(Reply::json(&json!({
            "captures": captures.objects(),
            "limits": { "captures": MOST, "uploadBytes": UPLOAD.to_string() },
            "version": env!("CARGO_PKG_VERSION"),
        })))
    })
    .await
}

async fn object(
    State(server): State<Arc<Server>>,
    extract::Path(id): extract::Path<String>,
    pairs: Result<Pairs, extract::rejection::QueryRejection>,
) -> Result<Reply, Refused> {
    params(pairs)?.end()?;
    let captures = Arc::clone(&server.captures);
    work(&server, move || Ok(Reply::json(&captures.object(&id)?))).await
}

async fn close(
    State(server): State<Arc<Server>>,
    extract::Path(id): extract::Path<String>,
    pairs: Result<Pairs, extract::rejection::QueryRejection>,
) -> Result<Reply, Refused> {
    params(pairs)?.end()?;
    server.captures.close(&id)?;
    Ok(Reply::json(&json!({})))
}

/// A route about a whole capture.
fn answer(data: &Dataset, view: &str, params: Params) -> Result<Reply, Refused> {
    match view {
        "summary" => answers::summary(data, params),
        "findings" => answers::findings(data, params),
        "taps" => answers::taps(data, params),
        "dialogues" => answers::dialogues(data, params),
        "delays" => answers::delays(data, params),
        "connections" => tables::page(data, Table::Connections, params),
        "transactions" => tables::page(data, Table::Transactions, params),
        "segments" => tables::page(data, Table::Segments, params),
        "columns" => tables::list(params),
        "complete" => complete::get(data, params),
        "timeline" => timeline::get(data, params),
        "setups" => marks::get_setups(data, params),
        "marks" => marks::get_transactions(data, params),
        "statistics" => statistics::get(data, params),
        "histogram" => statistics::histogram(data, params),
        "timing" => timing::get(data, params),
        "exchange" => exchange::get(data, params),
        "waits" => waits::get(data, params),
        _ => Err(Refused::not_found(format_args!(
            "there is no view {}; docs/src/page-api.md lists them",
            shown(view)
        ))),
    }
}

async fn view(
    State(server): State<Arc<Server>>,
    extract::Path((id, view)): extract::Path<(String, String)>,
    pairs: Result<Pairs, extract::rejection::QueryRejection>,
) -> Result<Reply, Refused> {
    let params = params(pairs)?;
    let captures = Arc::clone(&server.captures);
    work(&server, move || answer(&*captures.data(&id)?, &view, params)).await
}

async fn one(
    State(server): State<Arc<Server>>,
    extract::Path((id, connection)): extract::Path<(String, String)>,
    pairs: Result<Pairs, extract::rejection::QueryRejection>,
) -> Result<Reply, Refused> {
    let params = params(pairs)?;
    let captures = Arc::clone(&server.captures);
    work(&server, move || {
        connection::get(&*captures.data(&id)?, &connection, params)
    })
    .await
}

async fn one_view(
    State(server): State<Arc<Server>>,
    extract::Path((id, connection, view)): extract::Path<(String, String, String)>,
    pairs: Result<Pairs, extract::rejection::QueryRejection>,
) -> Result<Reply, Refused> {
    let params = params(pairs)?;
    let captures = Arc::clone(&server.captures);
    work(&server, move || {
        let data = captures.data(&id)?;
        match view.as_str() {
            "packets" => connection::packets(&data, &connection, params),
            "sequence" => connection::sequence(&data, &connection, params),
            _ => Err(Refused::not_found(format_args!(
                "there is no view {} of a connection; docs/src/page-api.md lists them",
                shown(&view)
            ))),
        }
    })
    .await
}

/// A capture comes in; the client may break off at any time.
async fn upload(
    State(server): State<Arc<Server>>,
    pairs: Result<Pairs, extract::rejection::QueryRejection>,
    body: Body,
) -> Result<Response, Refused> {
    let mut params = params(pairs)?;
    let name = params.text("name").unwrap_or_else(|| "capture".into());
    params.end()?;
    server.captures.has_room()?;
    let name: String = name.chars().filter(|c| !c.is_control()).take(NAME).collect();
    let room = |error: io::Error| Refused::internal(format_args!("no room for the upload: {error}"));
    let mut file = tempfile::Builder::new()
        .prefix("weir-upload-")
        .tempfile()
        .map_err(room)?;
    let mut chunks = body.into_data_stream();
    let mut bytes = 0u64;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| Refused::invalid(format_args!("the upload broke off: {error}")))?;
        bytes += chunk.len() as u64;
        if bytes > UPLOAD {
            return Err(Refused::too_large(format_args!(
                "the capture has more than {UPLOAD} bytes; open it with weir view FILE"
            )));
        }
        file = tokio::task::spawn_blocking(move || file.write_all(&chunk).map(|()| file))
            .await
            .map_err(Refused::internal)?
            .map_err(room)?;
    }
    let path = file.into_temp_path();
    let id = server.captures.open(name, vec![path.to_path_buf()], Some(path))?;
    let object = Reply::json(&server.captures.object(&id.to_string())?);
    Ok((StatusCode::CREATED, object).into_response())
}

/// Changes as they come.
async fn events(
    State(server): State<Arc<Server>>,
    pairs: Result<Pairs, extract::rejection::QueryRejection>,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, Refused> {
    params(pairs)?.end()?;
    let (send, receive) = mpsc::channel(16);
    let captures = Arc::clone(&server.captures);
    tokio::spawn(async move {
        let mut told: HashMap<String, String> = HashMap::new();
        let mut findings = captures.live().map_or(0, |(_, facts)| facts.open_findings().0);
        loop {
            let known = Arc::clone(&captures);
            let Ok(objects) = tokio::task::spawn_blocking(move || known.objects()).await else {
                return;
            };
            let mut news = changes(&mut told, objects);
            if let Some((id, facts)) = captures.live() {
                let (missed, changed) = facts.finding_changes(findings);
                findings += missed + changed.len() as u64;
                let change = |change| ("finding", json!({ "id": id.to_string(), "change": change }));
                news.extend(changed.iter().map(change));
            }
            for (name, data) in news {
                let event = Event::default().event(name).json_data(data);
                if send.send(event).await.is_err() {
                    return;
                }
            }
            // Who has gone is noticed although there is nothing to tell.
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = send.closed() => return,
            }
        }
    });
    Ok(Sse::new(ReceiverStream::new(receive)).keep_alive(KeepAlive::new().interval(SILENCE)))
}

/// Captures that are not as they were told, and those that are gone.
fn changes(told: &mut HashMap<String, String>, objects: Vec<Value>) -> Vec<(&'static str, Value)> {
    let mut news = Vec::new();
    let mut now = HashMap::new();
    for object in objects {
        let id = object["id"].as_str().unwrap_or_default().to_owned();
        let text = object.to_string();
        if told.remove(&id).as_ref() != Some(&text) {
            news.push(("capture", object));
        }
        now.insert(id, text);
    }
    news.extend(told.drain().map(|(id, _)| ("closed", json!({ "id": id }))));
    *told = now;
    news
}

/// A file of the page.
async fn file(State(server): State<Arc<Server>>, uri: Uri) -> Response {
    let folder = server.site.files.clone();
    let path = uri.path().to_owned();
    let read = tokio::task::spawn_blocking(move || page_file(&folder, &path)).await;
    match read {
        Ok(Ok((name, bytes))) => {
            // Vite puts a file's digest into the names in assets/.
            let caching = if name.starts_with("assets") {
                "public, max-age=31536000, immutable"
            } else {
                "no-cache"
            };
            ([(CONTENT_TYPE, kind(&name)), (CACHE_CONTROL, caching)], bytes).into_response()
        }
        Ok(Err(none)) => none.into_response(),
        Err(_) => Refused::internal("this file could not be read").into_response(),
    }
}

/// A file of the page, or why there is none.
fn page_file(folder: &Path, path: &str) -> Result<(PathBuf, Vec<u8>), NoFile> {
    let name = match path.trim_start_matches('/') {
        "" => Path::new("index.html"),
        name => Path::new(name),
    };
    // Only names below the folder; nothing in them is decoded.
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(NoFile::Unknown);
    }
    match std::fs::read(folder.join(name)) {
        Ok(bytes) => Ok((name.to_owned(), bytes)),
        Err(_) if name == Path::new("index.html") => Err(NoFile::NotBuilt(folder.join(name))),
        Err(_) => Err(NoFile::Unknown),
    }
}

/// Why there is no file.
#[derive(Debug)]
enum NoFile {
    Unknown,
    /// The page itself is missing.
    NotBuilt(PathBuf),
}

impl IntoResponse for NoFile {
    fn into_response(self) -> Response {
        match self {
            Self::Unknown => Refused::not_found("there is no such file").into_response(),
            Self::NotBuilt(path) => {
                let page = format!(
                    "<!doctype html><html lang=\"en\"><title>Weir</title><h1>The page is not built</h1><p>{} is not there. <code>make page</code> builds it beside the program; <code>--page-files FOLDER</code> names another place. The interface below <a href=\"/api/v1/captures\">/api/v1</a> answers without it.</html>",
                    escaped(&path.display().to_string())
                );
                (StatusCode::NOT_FOUND, Html(page)).into_response()
            }
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn kind(name: &Path) -> &'static str {
    match name.extension().and_then(|ending| ending.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map" | "webmanifest") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webp") => "image/webp",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn asked(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        let site = Site {
            hosts: vec!["weir.example".into()],
            ..Site::default()
        };
        let by_header = check(&site, None, &headers, true).is_ok();
        headers.remove(HOST);
        assert_eq!(
            check(&site, Some(host), &headers, true).is_ok(),
            by_header,
            "{host} in HTTP/2"
        );
        by_header
    }

    #[test]
    fn only_its_own_page_may_ask() {
        for host in [
            "127.0.0.1:8080",
            "localhost:1",
            "LOCALHOST",
            "[::1]:8080",
            "10.0.0.1",
            "weir.example:80",
        ] {
            assert!(asked(host, None), "{host}");
        }
        for host in [
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "weir.example.evil",
        ] {
            assert!(!asked(host, None), "{host}");
        }
        assert!(asked("127.0.0.1:1", Some("http://127.0.0.1:1")));
        for origin in [
            "http://evil.example",
            "null",
            "http://127.0.0.1:2",
            "http://localhost:1",
        ] {
            assert!(!asked("127.0.0.1:1", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn files_stay_in_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "x").unwrap();
        let page = folder.path().join("page");
        std::fs::create_dir(&page).unwrap();
        std::fs::write(page.join("index.html"), "the page").unwrap();
        assert_eq!(page_file(&page, "/").unwrap().1, b"the page");
        for path in [
            "/../secret",
            "//etc/passwd",
            "/assets/../../secret",
            "/%2e%2e/secret",
            "/./index.html/..",
        ] {
            page_file(&page, path).unwrap_err();
        }
    }
}
