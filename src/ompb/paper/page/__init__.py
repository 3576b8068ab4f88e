"""The results as pages: Markdown for the repository, and one HTML file with every table and figure."""
