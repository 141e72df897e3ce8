"""The site that is made of docs/ by mkdocs (mkdocs.yml): `hooks` is what mkdocs calls, all else is pure."""
