"""Adds the generated pages to the site: the chapters of the specification and the vocabulary."""

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# The other modules of this folder are no package.
sys.path.insert(0, str(Path(__file__).parent))

from clause_pages import specification_pages  # see the line above
from vocabulary_page import vocabulary_page


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """mkdocs calls this when it has collected the pages that are files."""
    for path, text in {**specification_pages(), "vocabulary.md": vocabulary_page()}.items():
        files.append(File.generated(config, path, content=text))
    return files
