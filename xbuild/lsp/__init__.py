"""The language server for HLO and MLIR text: diagnostics, hover, definitions, rename and outline in any editor.

Files, in the order of reading: `text.py` (positions and edits), `index.py` (the places of names), `document.py` (a text
with the programs read from it), `features.py` (what an editor asks, as pure functions), `analysis.py` with
`analysis_child.py` (check and lint in a process of their own), and `server.py` (the protocol; it alone needs pygls).
"""
