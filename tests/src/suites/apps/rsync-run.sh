# What the view shows is what lies beneath; a copy into the view is equal to its source; a second run finds nothing.
rsync -aHAX --checksum --dry-run --itemize-changes --delete "$INPUT/" "$BENEATH/"
rsync -aHAX --checksum --dry-run --itemize-changes --delete "$BENEATH/" "$INPUT/"
rsync -aHAXS "$INPUT/" copy/
rsync -aHAX --checksum --dry-run --itemize-changes --delete "$INPUT/" copy/
rsync -aHAX --checksum --dry-run --itemize-changes --delete copy/ "$BENEATH/"
echo changed >> copy/many/9
rsync -aHAX --inplace --itemize-changes "$INPUT/" copy/
rsync -aHAX --checksum --dry-run --itemize-changes --delete "$INPUT/" copy/
echo done
