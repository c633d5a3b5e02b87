//! `cargo xtask check-picture`: the pictures of a plan in a real browser.
//!
//! Takes a browser found on this machine; draws a small plan, lets `driver.js` use the page as a reader would, and
//! leaves screenshots to look at. Must not know how the page is made.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process::{cargo, in_search_path, run, workspace};

/// Uses the page and notes what it sees in `#result`.
const DRIVER: &str = include_str!("picture/driver.js");

/// Begins before the page's own script, so that no error is missed. In the browser's virtual time hardly any frames are
/// drawn, so what waits for one waits for the clock.
const WATCH: &str = "<script>const problems = []; \
    requestAnimationFrame = (act) => setTimeout(act, 16); \
    addEventListener('error', (event) => problems.push(event.message)); \
    addEventListener('securitypolicyviolation', (event) => problems.push(event.violatedDirective)); \
    console.error = console.warn = (...said) => problems.push(said.join(' '));</script>";

/// Programs that understand Chromium's headless flags, as they are called in `PATH`.
const BROWSERS: [&str; 6] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge"];

/// Checks the pictures; the folder with pages and screenshots is printed on stdout.
pub fn check() -> Result<()> {
    let browser = find_browser(std::env::var_os("MINFER_BROWSER"), std::env::var_os("PATH"))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = workspace().join(target).join("picture");
    run(cargo(&["run", "--quiet", "--package", "minfer-plan", "--example", "picture", "--"]).arg(&folder))?;

    let page = folder.join("driven.html");
    fs::write(&page, driven(&fs::read_to_string(folder.join("small.html"))?)?)?;
    let dom = headless(&browser, &["--virtual-time-budget=20000", "--dump-dom"], &page)?;
    let verdicts = verdicts(&dom)?;
    for verdict in &verdicts {
        eprintln!("{verdict}");
    }
    for (name, source, flags) in [
        ("svg", "small.svg", &["--window-size=1240,1150"][..]),
        ("light", "small.html", &[]),
        ("dark", "small.html", &["--blink-settings=preferredColorScheme=0"]),
        ("narrow", "small.html", &["--window-size=600,1900"]),
    ] {
        let png = folder.join(format!("{name}.png"));
        let shot = format!("--screenshot={}", png.display());
        let flags: Vec<&str> = ["--virtual-time-budget=2000", &shot].into_iter().chain(flags.iter().copied()).collect();
        headless(&browser, &flags, &folder.join(source))?;
        if !png.exists() {
            bail!("the browser made no screenshot {}", png.display());
        }
    }
    println!("{}", folder.display());
    match verdicts.iter().filter(|verdict| !verdict.starts_with("ok ")).count() {
        0 => Ok(()),
        n => bail!("{n} of {} checks of the page failed", verdicts.len()),
    }
}

/// `MINFER_BROWSER`, or the first known browser in the search path.
fn find_browser(named: Option<OsString>, search_path: Option<OsString>) -> Result<PathBuf> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        let path = PathBuf::from(&named);
        if path.is_file() {
            return Ok(path);
        }
        bail!("MINFER_BROWSER names {}, which is no file", path.display());
    }
    let found = BROWSERS.iter().find_map(|name| in_search_path(name, search_path.as_ref()));
    found.with_context(|| {
        format!(
            "no browser found: looked for {} in PATH. Install Chromium (Debian: `apt-get install chromium`), or set \
             MINFER_BROWSER to a browser that takes Chromium's headless flags",
            BROWSERS.join(", ")
        )
    })
}

/// The page with a watch on errors before it and the driver after it.
fn driven(page: &str) -> Result<String> {
    let (head, rest) = page.split_once("<head>").context("the page has no head")?;
    let (body, end) = rest.rsplit_once("</body>").context("the page has no body's end")?;
    Ok(format!("{head}<head>{WATCH}{body}<script>{DRIVER}</script></body>{end}"))
}

/// Runs the browser without a window on a file; gives its stdout.
fn headless(browser: &Path, flags: &[&str], page: &Path) -> Result<String> {
    // The page is our own, and containers seldom allow what the browser's sandbox needs.
    let fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1440,1150"];
    let mut command = Command::new(browser);
    command.args(fixed).args(flags).arg(format!("file://{}", page.display())).stderr(Stdio::null());
    let output = command.output().with_context(|| format!("cannot start {}", browser.display()))?;
    if !output.status.success() {
        bail!("{} {} failed ({})", browser.display(), flags.join(" "), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The lines that the driver wrote; its last one says that it came to its end.
fn verdicts(dom: &str) -> Result<Vec<String>> {
    let (_, rest) = dom.split_once("<pre id=\"result\">").context("the driver wrote nothing: did its script run?")?;
    let (text, _) = rest.split_once("</pre>").context("the driver's result has no end")?;
    let mut lines: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_string).collect();
    if lines.pop().as_deref() != Some("end") {
        bail!("the driver did not come to its end:\n{text}");
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_browser_is_said() {
        let error = find_browser(None, Some("/nowhere".into())).unwrap_err().to_string();
        assert!(error.contains("chromium") && error.contains("MINFER_BROWSER"), "{error}");
        let error = find_browser(Some("/nowhere/browser".into()), None).unwrap_err().to_string();
        assert!(error.contains("/nowhere/browser"), "{error}");
    }

    #[test]
    fn the_driver_must_come_to_its_end() {
        assert_eq!(verdicts("<pre id=\"result\">ok a\nend\n</pre>").unwrap(), ["ok a"]);
        assert!(verdicts("<pre id=\"result\">ok a\n</pre>").is_err());
        assert!(verdicts("<html></html>").is_err());
        assert!(driven("<head></head><body></body>").unwrap().contains("problems"));
        assert!(driven("").is_err());
    }
}
