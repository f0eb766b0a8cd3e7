//! The memory of a program: as much as it may have, and whether it ever wanted more, which its own words do not always
//! say. Must never give out more than its limit.

use rquickjs::allocator::Allocator;
use std::cell::Cell;
use std::ptr::null_mut;
use std::rc::Rc;

pub(super) struct Heap {
    used: usize,
    limit: usize,
    refused: Rc<Cell<bool>>,
}

impl Heap {
    pub(super) fn new(limit: usize, refused: Rc<Cell<bool>>) -> Self {
        let used = 0;
        Self {
            used,
            limit,
            refused,
        }
    }

    /// Whether so much more fits in the place of what is given back.
    fn fits(&self, more: usize, back: usize) -> bool {
        let fits = (self.used - back)
            .checked_add(more)
            .is_some_and(|used| used <= self.limit);
        if !fits {
            self.refused.set(true);
        }
        fits
    }

    fn took(&mut self, place: *mut u8) -> *mut u8 {
        self.used += size_of(place);
        place
    }
}

/// What the system set aside for it; 0 of nothing.
fn size_of(place: *mut u8) -> usize {
    // SAFETY: it is null or came from the system's allocator, as everything here.
    unsafe { libc::malloc_usable_size(place.cast()) }
}

// SAFETY: all memory comes from the system's allocator, whose results are aligned for any type, and goes back there.
unsafe impl Allocator for Heap {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.fits(size, 0) {
            return null_mut();
        }
        // SAFETY: any size may be asked for.
        let place = unsafe { libc::malloc(size) };
        self.took(place.cast())
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if !self.fits(count.saturating_mul(size), 0) {
            return null_mut();
        }
        // SAFETY: any size may be asked for.
        let place = unsafe { libc::calloc(count, size) };
        self.took(place.cast())
    }

    unsafe fn dealloc(&mut self, place: *mut u8) {
        self.used -= size_of(place);
        // SAFETY: the caller has it from here.
        unsafe { libc::free(place.cast()) };
    }

    unsafe fn realloc(&mut self, place: *mut u8, size: usize) -> *mut u8 {
        let before = size_of(place);
        if !self.fits(size, before) {
            return null_mut();
        }
        // SAFETY: the caller has it from here.
        let new: *mut u8 = unsafe { libc::realloc(place.cast(), size) }.cast();
        if !new.is_null() || size == 0 {
            self.used -= before;
            self.used += size_of(new);
        }
        new
    }

    unsafe fn usable_size(place: *mut u8) -> usize {
        size_of(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_given_than_the_limit_and_what_comes_back_is_given_again() {
        let refused = Rc::new(Cell::new(false));
        let mut heap = Heap::new(10_000, Rc::clone(&refused));
        let first = heap.alloc(6_000);
        assert!(!first.is_null() && !refused.get());
        assert!(heap.alloc(6_000).is_null() && refused.take());
        assert!(heap.calloc(usize::MAX, 2).is_null() && refused.take());
        // SAFETY: it came from there and is not used again.
        let first = unsafe { heap.realloc(first, 9_000) };
        assert!(!first.is_null() && !refused.get());
        // SAFETY: as before.
        assert!(unsafe { heap.realloc(first, 11_000) }.is_null() && refused.take());
        // SAFETY: as before.
        unsafe { heap.dealloc(first) };
        let all = heap.calloc(9, 1_000);
        assert!(!all.is_null() && !refused.get());
        // SAFETY: as before.
        unsafe { heap.dealloc(all) };
        assert_eq!(heap.used, 0);
    }
}
