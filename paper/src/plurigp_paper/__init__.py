"""The paper's experiments on top of the library: small scripts, one per experiment, and the page that shows them."""
