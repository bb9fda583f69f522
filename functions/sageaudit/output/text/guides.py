"""The words around guides, the same in every view."""

GUIDES_TITLE = "Guides: advice without dollars"
NO_GUIDES = "No guide applies to what is known of it."
