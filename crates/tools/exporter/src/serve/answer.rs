//! What is answered to a request.

use std::convert::Infallible;

use http_body_util::Full;
use hyper::body::{Body, Bytes};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use hyper::{Method, Request, Response, StatusCode};

use super::latest::{Latest, Missing};
use crate::sample::Format;

const TEXT: &str = "text/plain; charset=utf-8";

const PAGE: &str = concat!(
    "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Earmark</title></head>",
    "<body><h1>Earmark ",
    env!("CARGO_PKG_VERSION"),
    "</h1><p>What delays packets on the network devices of this host: ",
    "<a href=\"/metrics\">metrics</a> for Prometheus.</p></body></html>\n"
);

/// Answers one request; its body, if it has one, is not read. hyper leaves the body out of the
/// answer to HEAD.
pub(super) async fn answer<B: Body>(
    request: Request<B>,
    latest: Latest,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_asking = [Method::GET, Method::HEAD].contains(request.method());
    Ok(match request.uri().path() {
        "/" | "/metrics" if !is_asking => {
            let mut answer = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "use GET or HEAD\n");
            answer.headers_mut().insert(ALLOW, "GET, HEAD".parse().expect("it is printable"));
            answer
        }
        "/" => response(StatusCode::OK, "text/html; charset=utf-8", PAGE),
        "/metrics" => metrics(format_for(&request), latest).await,
        _ => response(StatusCode::NOT_FOUND, TEXT, "there is /metrics\n"),
    })
}

async fn metrics(format: Format, latest: Latest) -> Response<Full<Bytes>> {
    match latest.text(format).await {
        Ok(text) => response(StatusCode::OK, format.content_type(), text),
        Err(Missing::Failed(why)) => response(StatusCode::INTERNAL_SERVER_ERROR, TEXT, why + "\n"),
        Err(Missing::Late) => response(
            StatusCode::SERVICE_UNAVAILABLE,
            TEXT,
            "the devices are still being read; what a driver waits for: dmesg\n",
        ),
    }
}

/// OpenMetrics for those who name it; curl and browsers get the older format.
fn format_for<B>(request: &Request<B>) -> Format {
    let accepts = request.headers().get_all(ACCEPT).iter();
    let names = |text: &str| text.contains("application/openmetrics-text");
    if accepts.filter_map(|value| value.to_str().ok()).any(names) {
        Format::OpenMetrics
    } else {
        Format::Plain
    }
}

fn response(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind.parse().expect("it is printable"));
    response
}
