// The style of the report: system fonts, light and dark, one column from 320 px on. Included by report_page.cc only.
#pragma once

#include <string_view>

namespace muster::agent {

inline constexpr std::string_view kReportStyle = R"css(
:root{color-scheme:light dark;--bg:#fff;--panel:#f5f7f9;--text:#1c2127;--muted:#57616b;--line:#dce1e6;
--ok:#2b7a5d;--retry:#c27a10;--fatal:#b5271f;--stopped:#a3abb4;--lost:#e7b9a6;--run:#5b7fa6;--cross:#fff;--retry-text:#8c5500}
@media (prefers-color-scheme:dark){:root{--bg:#101418;--panel:#171d23;--text:#e4e8ec;--muted:#98a3ae;--line:#2a323a;
--ok:#4aa983;--retry:#dd9c3f;--fatal:#e8675f;--stopped:#5f6a75;--lost:#74432f;--run:#6f97c2;--cross:#101418;--retry-text:#dd9c3f}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
overflow-wrap:anywhere;-webkit-text-size-adjust:100%}
main{max-width:1120px;margin:0 auto;padding:28px 20px 64px}
h1{font-size:26px;line-height:1.25;font-weight:650;margin:2px 0 6px;letter-spacing:-.01em}
h2{font-size:16px;font-weight:600;margin:34px 0 10px}
h3{font-size:14px;font-weight:600;margin:18px 0 4px}
p{margin:0 0 8px}
.kicker,.muted{color:var(--muted);font-size:13px}
.kicker{margin:0}
.badge{display:inline-block;font-size:12px;font-weight:600;border:1px solid currentColor;border-radius:4px;padding:1px 7px;
vertical-align:4px;margin-left:2px;letter-spacing:0;white-space:nowrap}
.c-ok{color:var(--ok)}.c-retry{color:var(--retry-text)}.c-fatal{color:var(--fatal)}.c-open,.c-stopped{color:var(--muted)}
section.run{border-top:3px solid var(--line);padding-top:18px;margin-top:14px}
section.run.ok{border-color:var(--ok)}section.run.fatal{border-color:var(--fatal)}section.run.retry{border-color:var(--retry)}
main>section.run:first-child{margin-top:0}
section.run+section.run{margin-top:64px}
.why{margin:8px 0 0;padding:0;list-style:none}
.why li{padding:3px 0}
blockquote{margin:8px 0 0;padding:6px 12px;border-left:3px solid var(--line);background:var(--panel)}
code,pre,blockquote{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:12.5px}
pre{margin:4px 0 12px;padding:10px 12px;background:var(--panel);border:1px solid var(--line);border-radius:4px;
white-space:pre-wrap;max-height:420px;overflow:auto}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(132px,1fr));gap:1px;margin:18px 0 0;background:var(--line);
border:1px solid var(--line);border-radius:6px;overflow:hidden}
.facts div{background:var(--bg);padding:9px 13px}
.facts dt{color:var(--muted);font-size:12.5px}
.facts dd{margin:0;font-size:19px;font-weight:600;font-variant-numeric:tabular-nums;line-height:1.3}
.facts small{display:block;font-size:12.5px;font-weight:400;color:var(--muted)}
.notice{border:1px solid var(--retry);border-radius:6px;padding:8px 12px;margin:14px 0 0}
.scroll{overflow:auto;max-height:72vh;border:1px solid var(--line);border-radius:6px;padding:0 10px 8px 0}
.plot{display:grid;grid-template-columns:fit-content(150px) 1fr}
.corner,svg.axis{position:sticky;top:0;z-index:1;background:var(--bg);height:24px}
.corner{left:0;z-index:3;color:var(--muted);font-size:12px;line-height:24px;padding-left:12px}
svg{display:block;overflow:visible}
svg.axis{overflow:hidden}
svg.axis text{fill:var(--muted);font-size:12px;font-family:inherit}
.labels{position:sticky;left:0;z-index:2;background:var(--bg);min-width:0}
.labels div{height:20px;line-height:20px;font-size:12.5px;padding:0 12px 0 22px;color:var(--muted);white-space:nowrap;
overflow:hidden;text-overflow:ellipsis}
.labels .node{padding-left:12px;color:var(--text);font-weight:600}
rect{stroke-width:1}
rect.ok{fill:var(--ok);stroke:var(--ok)}rect.retry{fill:var(--retry);stroke:var(--retry)}
rect.fatal{fill:var(--fatal);stroke:var(--fatal)}rect.stopped{fill:var(--stopped);stroke:var(--stopped)}
rect.run{fill:var(--run);stroke:var(--run)}rect.lost{fill:var(--lost);stroke:var(--lost)}
rect.open{fill:var(--bg);stroke:var(--muted);stroke-dasharray:3 2}
rect:hover{opacity:.75}
line.grid{stroke:var(--line)}
text.cross{fill:var(--cross);font:700 15px/1 system-ui,sans-serif;text-anchor:middle;pointer-events:none;
paint-order:stroke;stroke-width:3px}
text.cross.retry{stroke:var(--retry)}text.cross.fatal{stroke:var(--fatal)}
.legend{list-style:none;margin:10px 0 0;padding:0;display:flex;flex-wrap:wrap;gap:4px 18px;font-size:13px;color:var(--muted)}
.legend i{display:inline-block;width:14px;height:10px;border-radius:2px;margin-right:6px}
i.ok{background:var(--ok)}i.retry{background:var(--retry)}i.fatal{background:var(--fatal)}i.stopped{background:var(--stopped)}
i.lost{background:var(--lost)}i.run{background:var(--run)}i.open{border:1px dashed var(--muted)}
b.cross{margin-right:6px;color:var(--text)}
table{width:100%;border-collapse:collapse;font-size:14px}
th{text-align:left;white-space:nowrap;font-weight:600;font-size:12.5px;color:var(--muted);padding:6px 14px 6px 0;border-bottom:1px solid var(--line)}
td{padding:9px 14px 4px 0;vertical-align:top}
tbody{border-bottom:1px solid var(--line)}
td:nth-child(6){min-width:158px}
tr.more td{padding:0 0 8px}
.num{font-variant-numeric:tabular-nums;white-space:nowrap}
details summary{cursor:pointer;color:var(--muted);font-size:13px;padding:2px 0}
details summary:hover{color:var(--text)}
.paths{margin:4px 0 8px;padding:0;list-style:none}
dfn{font-style:normal;white-space:nowrap}
footer{margin-top:48px;color:var(--muted);font-size:13px}
@media (max-width:760px){
main{padding:18px 14px 48px}h1{font-size:22px}.facts{grid-template-columns:1fr 1fr}.facts dd{font-size:17px}
.facts div:last-child:nth-child(odd){grid-column:1/-1}
.plot{grid-template-columns:fit-content(96px) 1fr}.labels div{padding:0 8px 0 14px}.labels .node,.corner{padding-left:8px}
table,tbody,tr,td{display:block}thead{display:none}tbody{padding:8px 0}td{padding:2px 0}
td[data-label]{display:grid;grid-template-columns:94px minmax(0,1fr)}
td[data-label]::before{content:attr(data-label);color:var(--muted);font-size:12.5px}
td[data-label]:first-child{font-weight:600}
}
@media print{.scroll{max-height:none}pre{max-height:none}}
)css";

}  // namespace muster::agent
